// The program as a user meets it: what it prints, what it refuses, with which exit code.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "models/training/saved_run.h"
#include "tests/support/json_keys.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kQuick = "train --data iris --model mlp:8 --epochs 2 ";

// Kills the program when `file` has been seen to be replaced so often. False if it ended before.
bool killed_after(int saves, const std::string& file, const std::string& arguments) {
  const std::string command =
      "exec '" TRITGRAD_BINARY "' " + arguments + " >/dev/null 2>&1 </dev/null";
  const ::pid_t program = ::fork();
  REQUIRE(program >= 0);
  if (program == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  // The new file was there beside the old one, so it is another inode.
  struct stat last = {}, now = {};
  int status = 0;
  while (saves > 0 && ::waitpid(program, &status, WNOHANG) == 0) {
    if (::stat(file.c_str(), &now) == 0 && now.st_ino != last.st_ino) --saves, last = now;
  }
  if (saves > 0) return false;
  ::kill(program, SIGKILL);
  ::waitpid(program, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

TEST_CASE("cli: train --json prints one object with every key") {
  const Result result = run(kQuick + "--recipe votes --val 0.2 --json -");
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());  // no progress in a pipe
  const Json json = Json::parse(result.out);
  CHECK(keys_of(json) == kRunKeys);
  CHECK(keys_of(json["time"]) ==
        std::set<std::string>{"preparing", "batches", "steps", "evaluation"});
  CHECK(keys_of(json["curve"][1]) ==
        std::set<std::string>{"epoch", "train_loss", "train_accuracy", "val_accuracy"});
  double parts = 0.0;
  for (const Json& part : json["time"]) {
    CHECK(part > 0.0);
    parts += part.get<double>();
  }
  CHECK(parts <= json["seconds"]);
  const Json& bytes = json["bytes_per_parameter"];
  CHECK(keys_of(bytes) ==
        std::set<std::string>{"weights", "scales", "residual", "moments", "gradients", "total"});
  for (const Json& each : bytes) CHECK(each.is_number());
  CHECK(json["weights_sha256"].get<std::string>().size() == 64);
  CHECK(json["val_accuracy"].is_number());
  CHECK(json["steps"] == 2 * 3);  // 150 - 30 test - 24 validation = 96 rows in batches of 32
}

TEST_CASE("cli: the same command twice, and with other threads, prints the same hash") {
  const auto hash = [](const std::string& more) {
    return Json::parse(run(kQuick + "--json - " + more).out)["weights_sha256"].get<std::string>();
  };
  const std::string first = hash("");
  CHECK(hash("") == first);
  CHECK(hash("--threads 1") == first);
  CHECK(hash("--threads 2") == first);
  CHECK(hash("--seed 2") != first);
}

TEST_CASE("cli: save, eval, inspect, resume") {
  const TempDir folder;
  const std::string file = folder / "m.safetensors";
  const Result stopped =
      run(kQuick + "--save " + file + " --stop-after 4 --json " + (folder / "r.json").string());
  REQUIRE(stopped.exit_code == 0);
  CHECK(contains(stopped.err, "note: stopped after step 4 of "));
  CHECK(contains(stopped.out, " %, saving "));
  CHECK(contains(stopped.err, "; saved; to go on: tritgrad train --resume " + file));
  const Json trained = Json::parse(read_text(folder / "r.json"));
  CHECK(trained["time"]["saving"] > 0.0);
  const Result eval = run("eval " + file + " --json -");
  REQUIRE(eval.exit_code == 0);
  CHECK(Json::parse(eval.out)["test_accuracy"] == trained["test_accuracy"]);
  const Result inspected = run("inspect " + file + " --json -");
  REQUIRE(inspected.exit_code == 0);
  const Json bytes = Json::parse(inspected.out);
  CHECK(bytes["forecast_bytes"] == bytes["live_bytes"]);
  CHECK(run("inspect " + file).out.find("forecast equals live bytes") != std::string::npos);
  check_refused("inspect " + file + " --recipe fp32", "holds its recipe; leave out --recipe");
  check_refused("inspect " + file + " --set weight.lr=1", "holds its recipe; leave out --recipe");

  const Result resumed = run("train --resume " + file + " --json -");
  CHECK(!contains(resumed.err, "note: "));
  CHECK(contains(run("train --resume " + file).err,
                 "' is finished; to train on give --epochs above"));
  REQUIRE(resumed.exit_code == 0);
  const Result whole = run(kQuick + "--json -");
  for (const char* hash : {"weights_sha256", "optimizer_sha256"}) {
    CHECK(Json::parse(resumed.out)[hash] == Json::parse(whole.out)[hash]);
  }
  check_refused("train --resume " + file + " --model mlp:9", "contradicts the checkpoint");
  check_refused("train --resume " + file + " --lr 0.1", "leave them out");
  check_refused("train --resume " + file + " --epochs 1", "steps already, 4 an epoch; give ");
  CHECK(contains(
      run("train --resume " + file + " --epochs 3").err,
      "note: the schedule of rates in '" + file + "' was that of 2 epochs and is now that of 3"));
}

TEST_CASE("cli: a resumed run takes label smoothing from its checkpoint") {
  const TempDir folder;
  const std::string file = folder / "m.safetensors", smoothed = kQuick + "--label-smoothing .3 ";
  REQUIRE(run(smoothed + "--stop-after 4 --quiet --save " + file).exit_code == 0);
  check_refused(
      "train --resume " + file + " --label-smoothing 0",
      "--label-smoothing: '0' contradicts the checkpoint '" + file + "', which has '0.3'");
  const Result resumed = run("train --json - --resume " + file);
  REQUIRE(resumed.exit_code == 0);
  const Json whole = Json::parse(run(smoothed + "--json -").out);
  CHECK(Json::parse(resumed.out)["weights_sha256"] == whole["weights_sha256"]);
}

TEST_CASE("cli: eval names the recipe as train does") {
  const TempDir folder;
  folder.write("mixture.toml", "base = \"votes\"\nname = \"mine\"\n");
  const std::string file = folder / "m.safetensors";
  const Result trained =
      run(kQuick + "--recipe " + (folder / "mixture.toml").string() + " --save " + file);
  CHECK(trained.out.starts_with("mine on iris"));
  CHECK(contains(run("eval " + file).out, ": mine on iris"));
}

TEST_CASE("cli: a data-parallel run goes on without its recipe's file, in the way it began") {
  const TempDir folder;
  const std::string file = folder / "m.safetensors", recipe = folder / "mine.toml";
  folder.write("mine.toml", "base = \"fp32\"\nname = \"mine\"\n");
  REQUIRE(
      run(kQuick + "--recipe " + recipe + " --dp apmsqueeze --quiet --stop-after 4 --save " + file)
          .exit_code == 0);
  fs::remove(recipe);
  const std::string resume = "train --quiet --resume " + file;
  check_refused(resume + " --dp votes", "which has 'apmsqueeze'; leave the option out");
  check_refused(resume + " --dp-warmup .5", "--dp-warmup: '0.5' contradicts the checkpoint");
  check_refused(resume + " --dp-scale rms", "which has 'mean'");
  check_refused(resume + " --dp-majority", "needs --dp votes");
  CHECK(run(resume + " --dp apmsqueeze --dp-warmup .2").exit_code == 0);
}

TEST_CASE("cli: inspect at a size nobody can allocate") {
  const Result result = run("inspect --model mlp:8192-65536-65536-32768 --recipe latent8 --json -");
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["parameters"].get<double>() > 6.9e9);
  CHECK(json["bytes_per_parameter"]["total"].get<double>() < 1.1);
  CHECK(json["gradient_policy"] == "released");
}

TEST_CASE("cli: compare prints a table and writes one self-contained page") {
  const TempDir folder;
  const Result result =
      run("compare --data iris --model mlp:8 --epochs 2 --seeds 2 --recipes "
          "'master, latent8' --cache " +
          (folder / "cache").string() + " --report " + (folder / "r.html").string());
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("latent8") != std::string::npos);
  CHECK(result.out.find((folder / "r.html").string()) != std::string::npos);
  const std::string page = read_text(folder / "r.html");
  CHECK(page.find("<svg") != std::string::npos);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("src=\"http") == std::string::npos);
}

TEST_CASE("cli: recipes, data and help") {
  CHECK(run("recipes").out.find("latent8") != std::string::npos);
  CHECK(run("recipes list").out == run("recipes").out);
  // Weights, moments, both; then the gradient kept in bf16, and all three.
  CHECK(contains(run("recipes").out, "3.01     2.13   5.14      2.00   7.14"));
  const Result shown = run("recipes show votes --set weight.lr=0.5");
  CHECK(shown.out.find("lr = 0.5") != std::string::npos);
  CHECK(run("data").out.find("wdbc") != std::string::npos);
  CHECK(run("data list").exit_code == 0);
  for (const char* command :
       {"", "train", "eval", "compare", "inspect", "recipes", "data", "data fetch", "bench"}) {
    CAPTURE(command);
    const Result help = run(std::string(command) + " --help");
    CHECK(help.exit_code == 0);
    CHECK(help.out.find("Example") != std::string::npos);
  }
  CHECK(contains(run("compare --help").out, "folder of fetched data and finished runs"));
  CHECK(contains(run("compare --help").out, "by RMSE in the units of the label"));
  CHECK(contains(run("--help").out,
                 "recipes x seeds on the same data: accuracy or RMSE, bytes, time"));
  CHECK(run("--version").out.starts_with(TRITGRAD_VERSION));
}

TEST_CASE("cli: a configuration file stands for options; the command line wins") {
  const TempDir folder;
  folder.write("run.toml",
               "data = \"iris\"\nmodel = \"mlp:8\"\nepochs = 2\nrecipe = \"votes\"\n"
               "[set.weight]\nlr = 0.125\n");
  const std::string config = "train --config " + (folder / "run.toml").string() + " --json - ";
  const Json from_file = Json::parse(run(config).out);
  CHECK(from_file["epochs"] == 2);
  const Json expected =
      Json::parse(run(kQuick + "--recipe votes --set weight.lr=0.125 --json -").out);
  CHECK(from_file["weights_sha256"] == expected["weights_sha256"]);
  const Json by_option = Json::parse(run(kQuick + "--recipe votes --lr .125 --json -").out);
  CHECK(by_option["weights_sha256"] == expected["weights_sha256"]);
  CHECK(Json::parse(run(config + "--epochs 1").out)["epochs"] == 1);
  folder.write("bad.toml", "epoch = 2\n");
  check_refused("train --config " + (folder / "bad.toml").string(), "did you mean");
  folder.write("bad.toml", "epochs = = 2\n");
  check_refused("train --config " + (folder / "bad.toml").string(), "line 1");
  folder.write("bad.toml", "epochs = 2\nval = 0.95\n");
  check_refused("train --config " + (folder / "bad.toml").string(),
                "bad.toml', line 2: --val: '0.95' found, a number from 0 to 0.9");
  // A mistake on the command line is not the file's.
  folder.write("long.toml", "epochs = 20\n");
  check_refused("train --config " + (folder / "long.toml").string() + " --epochs 0",
                "tritgrad: --epochs: '0' found");
  check_refused("train --config " + (folder / "absent.toml").string(), "absent.toml");
  folder.write("bad.toml", "config = \"run.toml\"\n");
  check_refused("train --config " + (folder / "bad.toml").string(), "line 1: unknown key 'config'");
  check_refused(config + "--config=" + (folder / "run.toml").string(), "--config: given twice");
}

TEST_CASE("cli: mistyped names are refused with the nearest one") {
  check_refused("trian", "train");
  check_refused("train --epoch 3", "--epochs");
  check_refused("train --data wbdc", "wdbc");
  check_refused("train --recipe vote", "votes");
  check_refused("compare --recipes master,latent", "latent8");
  check_refused("compare --recipes all,nope", "--recipes: 'all' stands alone");
  check_refused("train --lr abc", "--lr: 'abc' is no number");
  check_refused("train --data iris --model mpl:8", "mlp:");
  check_refused("train --set weight.lrr=1", "lr");
  check_refused("train --epochs 0",
                "--epochs: '0' found, a whole number from 1 to 1000000 expected");
  check_refused("train --epochs many", "'many' found, a whole number");
  check_refused("train --epochs 1.5", "'1.5' found, a whole number");
  check_refused("train --label-smoothing 1", "'1' found, a number from 0 to 0.9 expected");
  check_refused("train --label-smoothing nan", "'nan' found, a number");
  check_refused("train --pixels cubic", "pixels: 'cubic' found, linear or sqrt expected");
  check_refused("train --pixels sqrt", "'wdbc' holds no pixels of 8 bits");
  check_refused("train --seed -1", "'-1' found, a whole number from 0 to 18446744073709551615");
  check_refused("train --threads 0", "'0' found, a whole number from 1 to 1024 expected");
  check_refused("train --data iris --model mlp:5-8-3", "4 features");
  check_refused("inspect", "inspect: give either");
  check_refused("data fetch minst", "mnist");
  check_refused("train --folds 5 --save x", "--folds");
}

TEST_CASE("cli: an option without its value takes no other option for it") {
  const TempDir folder;
  const std::string train = "train --data iris --epochs 2 ", here = from_folder(folder.path());
  check_refused(train + "--save --quiet",
                "--save: a value is missing, '--quiet' behind it is an option; give one, or write "
                "--save=--quiet if that is meant",
                here);
  check_refused(train + "--json --seed=2", "--json: a value is missing, '--seed=2' behind it",
                here);
  check_refused("train --data --epochs 3", "--data: a value is missing, '--epochs' behind it",
                here);
  check_refused("train --config --quiet", "--config: a value is missing", here);
  check_refused("compare --recipes --quiet", "--recipes: a value is missing", here);
  check_refused(train + "--save", "--save: a value is missing; give one behind it", here);
  CHECK(std::filesystem::is_empty(folder.path()));
  // What is no option, or is joined to its own, is a value.
  REQUIRE(run(train + "--json --mine --save=--quiet --quiet", here).exit_code == 0);
  CHECK(std::filesystem::exists(folder / "--mine"));
  CHECK(std::filesystem::exists(folder / "--quiet"));
}

TEST_CASE("cli: bad data files are refused with file, place, what was found and what is wanted") {
  const TempDir folder;
  const auto csv = [&](const std::string& text, const std::string& part,
                       const std::string& more = "") {
    folder.write("t.csv", text);
    check_refused("train --data " + (folder / "t.csv").string() + " --model mlp:4 " + more, part);
  };
  check_refused("train --data " + (folder / "absent.csv").string(), "absent.csv");
  csv("", "empty");
  csv("a,b,y\n", "t.csv");
  csv("a,b,y\n1,2,0\n1,2\n3,4,1\n", "line 3");
  csv("a,b,y\n1,2,0\n1,x,1\n3,4,1\n", "line 3");
  csv("a,b,y\n1,2,0\n1,nan,1\n3,4,1\n", "line 3");
  csv("a,b,y\n1,2,0\n1,inf,1\n3,4,1\n", "line 3");
  csv("a,b,y\n1,2,0\n1,3,0\n3,4,0\n", "class");
  csv("a,b,y\n1,2,0\n1,3,1\n3,4,0\n", "label", "--label yy");
}

TEST_CASE("cli: a checkpoint remembers its label column; other data are refused") {
  const TempDir folder;
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    rows += std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i / 10) + "\n";
  }
  folder.write("t.csv", "y,a,b\n" + rows);
  const std::string file = folder / "m.safetensors";
  const std::string data = "--data " + (folder / "t.csv").string();
  const Result trained =
      run("train " + data + " --label y --model mlp:4 --epochs 3 --json - --save " + file);
  REQUIRE(trained.exit_code == 0);
  const Result eval = run("eval " + file + " --json -");
  REQUIRE(eval.exit_code == 0);
  CHECK(Json::parse(eval.out)["test_accuracy"] == Json::parse(trained.out)["test_accuracy"]);
  check_refused("train --resume " + file + " --label b", "contradicts");
  check_refused("eval " + file + " --data wine", "features");
  check_refused("train --data iris --epochs 1 --json /nonexistent/x", "no folder '/nonexistent'");
  check_refused("train --data iris --epochs 1 --save " + (folder / "").string(), "folder");
  check_refused("compare --data iris --epochs 1 --report /nonexistent/r.html", "--report");
  folder.write("t.csv", "y,a,b\n" + rows + "1,3,1\n");
  check_refused("train --epochs 5 --resume " + file, "have changed");
  check_refused("eval " + file, "have changed since it was written; its test rows may be others");
  CHECK(run("eval " + file + " " + data).exit_code == 0);
  check_refused("eval " + file + " --label a " + data, "column 'a' is a feature of the model");
  folder.write("u.csv", "y,a,b\n" + rows + "2,3,1\n");
  check_refused("eval " + file + " --data " + (folder / "u.csv").string(),
                "u.csv, line 22: label \"2\" is none of the 2 classes of the model");
}

TEST_CASE("cli: a checkpoint and a log are files, not standard output") {
  check_refused("train --data iris --epochs 1 --save -", "--save: a checkpoint cannot go to");
  check_refused("train --data iris --epochs 1 --log -", "--log: the log cannot go to");
}

TEST_CASE("cli: a machine without HOME trains on data that are not fetched") {
  const std::string without =
      "env -u HOME -u XDG_CACHE_HOME -u TRITGRAD_DATA '" TRITGRAD_BINARY "' ";
  const std::string quiet = " >/dev/null 2>/dev/null";
  CHECK(WEXITSTATUS(std::system((without + "train --data iris --epochs 1" + quiet).c_str())) == 0);
  CHECK(WEXITSTATUS(std::system((without + "train --data mnist --epochs 1" + quiet).c_str())) == 1);
}

TEST_CASE("cli: a full disk behind standard output is an error") {
  const TempDir folder;
  const std::string said = folder / "said";
  const std::string command = "'" TRITGRAD_BINARY "' recipes >/dev/full 2>'" + said + "'";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 1);
  CHECK(read_text(said) ==
        "tritgrad: standard output cannot be written; is it closed, or the disk full?\n");
}

TEST_CASE("cli: a limit on the size of files is a full disk, not the end of the process") {
  const TempDir folder;
  const std::string log = folder.write("run.jsonl", "{\"older\": 1}\n");
  const Result result = run("train --data iris --model mlp:4 --epochs 20 --quiet --log '" + log +
                                "' --json '" + (folder / "r.json").string() + "'",
                            "ulimit -f 1;");
  CHECK(result.exit_code == 1);
  CHECK(result.err == "tritgrad: --log: '" + log +
                          "' cannot be written (File too large); what was written before stays\n");
}

TEST_CASE("cli: kill -9 at any moment loses nothing that was saved") {
  const std::string job = "train --data iris --model mlp:16 --epochs 1000000 --json - ";
  for (int saves = 1; saves <= 5; ++saves) {
    CAPTURE(saves);
    const TempDir folder;
    const std::string file = folder / "k.safetensors";
    REQUIRE(killed_after(saves, file, job + "--save-every 1 --save " + file));
    const auto step = SavedRun(file).step();
    CHECK(step >= saves);
    const std::string end = " --stop-after " + std::to_string(step + 5);
    const Result resumed = run("train --json - --resume " + file + end);
    CAPTURE(resumed.err);
    REQUIRE(resumed.exit_code == 0);
    const Result whole = run(job + "--save " + (folder / "whole").string() + end);
    REQUIRE(whole.exit_code == 0);
    CHECK(Json::parse(resumed.out)["weights_sha256"] == Json::parse(whole.out)["weights_sha256"]);
  }
}

TEST_CASE("cli: corrupt and truncated checkpoints are refused, and nothing is written") {
  const TempDir folder;
  const std::string file = folder / "m.safetensors";
  REQUIRE(run(kQuick + "--quiet --save " + file).exit_code == 0);
  const std::string good = read_text(file);
  const std::string out = folder / "out.json";
  std::string bad = good;
  bad[bad.size() - 5] = static_cast<char>(bad[bad.size() - 5] ^ 4);
  folder.write("bad.safetensors", bad);
  check_refused("eval " + (folder / "bad.safetensors").string() + " --json " + out,
                "bad.safetensors");
  folder.write("bad.safetensors", good.substr(0, good.size() / 2));
  check_refused("train --resume " + (folder / "bad.safetensors").string() + " --json " + out,
                "bad.safetensors");
  check_refused("inspect " + (folder / "absent.safetensors").string() + " --json " + out,
                "absent.safetensors");
  CHECK_FALSE(fs::exists(out));
  // A failed run must not touch the checkpoint that it was to replace.
  check_refused("train --data wine --resume " + file + " --save " + file,
                "which has other features");
  CHECK(read_text(file) == good);
}

TEST_CASE("cli: --all-rows trains on all rows, and none of them are its test") {
  const TempDir folder;
  const std::string path = folder / "m.safetensors";
  const Result trained =
      run("train --quiet --data iris --model mlp:4 --epochs 2 --all-rows --json - --save " + path);
  REQUIRE(trained.exit_code == 0);
  CHECK(Json::parse(trained.out)["test_accuracy"].is_null());
  CHECK(Json::parse(trained.out)["steps"] == 2 * 5);  // 150 rows in batches of 32
  const Result eval = run("eval --json - " + path);
  REQUIRE(eval.exit_code == 0);
  CHECK(Json::parse(eval.out)["tested"] == "all rows");
  CHECK(Json::parse(eval.out)["rows"] == 150);
  check_refused("train --data iris --all-rows --folds 3", "--all-rows: the folds of --folds");
  check_refused("train --quiet --epochs 3 --resume " + path + " --val 0.1", "--val");
  // The rows are those of the checkpoint when its run goes on.
  const Result resumed = run("train --quiet --epochs 3 --json - --resume " + path);
  REQUIRE(resumed.exit_code == 0);
  CHECK(Json::parse(resumed.out)["steps"] == 3 * 5);
}

}  // namespace tritgrad::test::test_cli
