// What recipe files and overrides may not say, and the sentence that each mistake gets.
#include <fstream>

#include "models/networks/model.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_recipe_errors {
namespace {

struct Mistake {
  const char* text;     // of the recipe file
  const char* message;  // without the path of the file: PATH stands for it
};

// Loads a recipe file of this text for a small model.
class RecipeFile {
 public:
  std::string refused(const std::string& text, const std::vector<std::string>& overrides = {}) {
    std::ofstream(path_) << text;
    std::string message =
        refusal([&] { plan_model("mlp:8-16-3", 0, 0, load_recipe(path_, overrides)); });
    const std::size_t found = message.find(path_);
    return found == std::string::npos ? message : message.replace(found, path_.size(), "PATH");
  }

 private:
  TempDir folder_;
  std::string path_ = (folder_.path() / "q.toml").string();
};

std::string on_votes(const std::string& override_text) {
  return refusal([&] { load_recipe("votes", {override_text}); });
}

}  // namespace

TEST_CASE("recipe errors: numbers of overrides need no zero before the point") {
  CHECK(on_votes("continuous.beta1=.8").empty());
  CHECK(load_recipe("votes", {"continuous.beta1=.8"}).toml ==
        load_recipe("votes", {"continuous.beta1=0.8"}).toml);
  CHECK(contains(on_votes("continuous.beta1=-.8"), "-0.8"));
  for (const char* one : {"1.", "+1.", "1.e0"}) {
    CHECK(load_recipe("votes", {std::string("weight.lr=") + one}).toml ==
          load_recipe("votes", {"weight.lr=1.0"}).toml);
  }
  CHECK(contains(on_votes("continuous.beta1=.8x"), "got \".8x\""));
}

TEST_CASE("recipe errors: a group of weights has a format and a rule of its own") {
  RecipeFile file;
  const std::string missing =
      "' is missing; a group of weights takes nothing from [weight] and needs a format and a rule "
      "of its own";
  CHECK(file.refused("base = \"votes\"\n[[group]]\nmatch = \"layers.0.weight\"\nlr = 0.01\n") ==
        "recipe 'PATH', line 3: [[group]] match = \"layers.0.weight\": 'format" + missing);
  CHECK(file.refused("base = \"eco\"\n[[group]]\nmatch = \"head.*\"\nrule = \"lion\"\n") ==
        "recipe 'PATH', line 3: [[group]] match = \"head.*\": 'format" + missing);
  CHECK(file.refused("base = \"eco\"\n[[group]]\nmatch = \"head.*\"\nformat = \"bf16\"\n") ==
        "recipe 'PATH', line 3: [[group]] match = \"head.*\": 'rule" + missing);
  // Other roles begin from [continuous].
  CHECK(file.refused("base = \"votes\"\n[[group]]\nmatch = \"*\"\nrole = \"norm\"\nlr = 1\n")
            .empty());
}

TEST_CASE("recipe errors: a recipe without a base says what its weights are") {
  RecipeFile file;
  const auto missing = [](const std::string& key) {
    return "recipe 'PATH': [weight] has no '" + key +
           "'; give it one, or begin the file with base = \"votes\" to change a built-in recipe";
  };
  CHECK(file.refused("name = \"x\"\n") == missing("format"));
  CHECK(file.refused("name = \"x\"\n[weight]\nrule = \"sgd\"\n") == missing("format"));
  CHECK(file.refused("name = \"x\"\n[weight]\nformat = \"fp32\"\n") == missing("rule"));
  CHECK(file.refused("name = \"x\"\n", {"weight.format=fp32", "weight.rule=sgd"}).empty());
}

TEST_CASE("recipe errors: a file is called as it says, or else as the file is") {
  const TempDir folder;
  const std::string mine = folder.write("mine.toml", "base = \"votes\"\n[weight]\nlr = 0.5\n");
  CHECK(load_recipe(mine).name == "mine");
  CHECK(load_recipe(folder.write("a.toml", "base = \"votes\"\nname = \"b\"\n")).name == "b");
  CHECK(load_recipe(folder.write("\xE4.toml", "base = \"votes\"\n")).name == "\uFFFD");
}

TEST_CASE("recipe errors: keys without effect are refused from files as from overrides") {
  RecipeFile file;
  const std::string end = " has no effect with this format and rule; leave it out";
  const Mistake mistakes[] = {
      {"base = \"fp32\"\n[weight]\nrule = \"sgd\"\nbeta1 = 0.8\n", "line 4: weight.beta1"},
      {"base = \"microadam\"\n[weight]\nrule = \"sgd\"\ndensity = 0.1\n", "line 4: weight.density"},
      {"base = \"fp32\"\n[weight]\nv = \"root8\"\nrule = \"sgd\"\n", "line 3: weight.v"},
      {"base = \"fp32\"\n[continuous]\nwindow = 4\n", "line 3: continuous.window"},
      {"base = \"eco\"\n[weight]\nnesterov = true\n", "line 3: weight.nesterov"},
      {"base = \"eco\"\n[weight]\nbeta1 = 0.1\n", "line 3: weight.beta1"},
      {"base = \"latent8\"\n[weight]\nm = \"int8\"\n", "line 3: weight.m"},
      {"name = \"x\"\n[weight]\nformat = \"fp32\"\nrule = \"adamw\"\nthreshold = 4\n",
       "line 5: weight.threshold"},
      {"base = \"votes\"\n[[group]]\nmatch = \"head.*\"\nformat = \"fp32\"\nrule = \"adamw\"\n"
       "window = 4\n",
       "line 6: [[group]] match = \"head.*\": window"}};
  for (const Mistake& mistake : mistakes) {
    CHECK(file.refused(mistake.text) == "recipe 'PATH', " + (mistake.message + end));
  }
  const std::string about_kept =
      ": gradient_format is about kept gradients; set gradients = \"kept\" or leave it out";
  CHECK(file.refused("base = \"fp32\"\ngradients = \"released\"\ngradient_format = \"bf16\"\n") ==
        "recipe 'PATH', line 3" + about_kept);
  CHECK(file.refused("base = \"latent8\"\n[weight]\nmomentum = 0.5\nm = \"int8\"\n").empty());
  // What the base says, or an override makes idle, may stay.
  CHECK(file.refused("base = \"microadam\"\n[weight]\nrule = \"sgd\"\n").empty());
  CHECK(file.refused("base = \"fp32\"\n[weight]\nbeta1 = 0.8\n", {"weight.rule=sgd"}).empty());
  // What 'recipes show' prints loads again, with what an override makes idle left out.
  for (const char* rule : {"sgd", "adamw"}) {
    const Recipe shown = load_recipe("microadam", {concat("weight.rule=", rule)});
    CHECK(file.refused(without_idle_keys(shown)) == "");
  }
  CHECK(without_idle_keys(load_recipe("votes")) == load_recipe("votes").toml);
  // Every built-in recipe is a good file to start from.
  for (const std::string& name : recipe_names()) {
    CAPTURE(name);
    CHECK(file.refused(builtin_recipe_text(name)) == "");
  }
  CHECK(file.refused("base = \"eco\"\n[weight]\nhead_lr = 0.1\n[[group]]\nmatch = \"head.*\"\n"
                     "format = \"fp32\"\nrule = \"adamw\"\n") ==
        "recipe 'PATH', line 3: weight.head_lr: a [[group]] trains the head's matrix; set its lr "
        "there");
}

TEST_CASE("recipe errors: keys that the schedule does not read are refused with that reason") {
  RecipeFile file;
  CHECK(refusal([] {
          load_recipe("votes", {"weight.schedule=constant", "weight.final=0.1"});
        }) ==
        "recipe 'votes': weight.final has no effect with schedule = 'constant'; set schedule = "
        "'linear', 'cosine' or 'wsd' or leave it out");
  CHECK(file.refused("base = \"votes\"\n[continuous]\nschedule = \"cosine\"\ndecay = 0.2\n") ==
        "recipe 'PATH', line 4: continuous.decay has no effect with schedule = 'cosine'; set "
        "schedule = 'wsd' or leave it out");
  CHECK(file.refused("base = \"votes\"\n[[group]]\nmatch = \"head.*\"\nformat = \"fp32\"\n"
                     "rule = \"adamw\"\ndecay = 0.2\n") ==
        "recipe 'PATH', line 6: [[group]] match = \"head.*\": decay has no effect with schedule = "
        "'constant'; set schedule = 'wsd' or leave it out");
}

TEST_CASE("recipe errors: warm-up and decay fit into the run") {
  RecipeFile file;
  const std::string wsd = "base = \"votes\"\n[weight]\nschedule = \"wsd\"\nwarmup = 0.6\n";
  CHECK(file.refused(wsd + "decay = 0.9\n") ==
        "recipe 'PATH', [weight], line 5: warmup = 0.6 and decay = 0.9 are more than all steps "
        "together; with schedule = 'wsd' lower one of them until their sum is at most 1");
  CHECK(file.refused(wsd + "decay = 0.4\n").empty());
  CHECK(contains(refusal([] {
                   load_recipe("votes", {"weight.schedule=wsd", "weight.warmup=0.9"});
                 }),
                 "decay = 0.2 are more"));
  CHECK(on_votes("weight.warmup=1.0").empty());  // cosine has no decay
}

TEST_CASE("recipe errors: scales come with bare trits, and keys of theirs too") {
  RecipeFile file;
  const std::string reason =
      " has no effect: only bare trits have scales, and no weight of this recipe is of them; leave "
      "it out";
  for (const char* name : {"fp32", "master", "flash-adamw"}) {
    CAPTURE(name);
    CHECK(refusal([&] { load_recipe(name, {"scale.lr=0.1"}); }) ==
          concat("recipe '", name, "': scale.lr", reason));
  }
  CHECK(file.refused("base = \"fp32\"\n[scale]\nlr = 0.1\n") ==
        "recipe 'PATH', line 3: scale.lr" + reason);
  // Of a mixture the trits of one group will do; what a base brings along may stay; what all of
  // scales, norms and biases follow has an effect.
  const std::string mixture =
      "base = \"fp32\"\n[scale]\nlr = 0.1\n[[group]]\nmatch = \"layers.0.weight\"\n";
  CHECK(file.refused(mixture + "format = \"latent8\"\nrule = \"normalized\"\n").empty());
  CHECK(file.refused("base = \"votes\"\n[weight]\nformat = \"bf16\"\n").empty());
  CHECK(refusal([] { load_recipe("fp32", {"continuous.lr=0.1"}); }).empty());
  const Recipe shown = load_recipe("votes", {"weight.format=bf16"});
  CHECK_FALSE(contains(without_idle_keys(shown), "lr_relative"));
  CHECK(file.refused(without_idle_keys(shown)).empty());
}

TEST_CASE("recipe errors: a number beyond double is refused as such") {
  CHECK(on_votes("weight.lr=1e400") ==
        "override 'weight.lr=1e400': 1e400 is no finite number; give one that double holds, below "
        "1.8e308");
  CHECK(contains(on_votes("weight.lr=-.1e400"), "-.1e400 is no finite number"));
}

TEST_CASE("recipe errors: a file names its base") {
  RecipeFile file;
  const std::string neither =
      "recipe file 'PATH': it has neither 'base' nor 'name'; begin it with base = \"votes\" to "
      "change a built-in recipe, or give a complete recipe its name";
  CHECK(file.refused("") == neither);
  CHECK(file.refused("[weight]\nlr = 1\n") == neither);
  CHECK(file.refused("\nbase = 3\n") ==
        "recipe file 'PATH', line 2: 'base' must be the name of a built-in recipe in quotes, for "
        "example base = \"votes\"");
  CHECK(file.refused("base = \"votess\"\n") ==
        "recipe file 'PATH', line 1: base = 'votess' is none of the recipes that 'tritgrad "
        "recipes' lists (did you mean 'votes'?)");
  CHECK(refusal([] { load_recipe("votess"); }) ==
        "unknown recipe 'votess'; give one that 'tritgrad recipes' lists (did you mean 'votes'?) "
        "or the path of a .toml file");
  CHECK(refusal([] { load_recipe("elephants"); }) ==
        "unknown recipe 'elephants'; give one that 'tritgrad recipes' lists or the path of a .toml "
        "file");
  // The file's name, not the one that it inherits.
  CHECK(contains(file.refused("base = \"votes\"\n[[group]]\nmatch = \"x\"\nrole = \"bias\"\n"),
                 "recipe 'PATH': [[group]] match = \"x\" fits no parameter"));
}

TEST_CASE("recipe errors: messages have the line, what was found and what is accepted") {
  RecipeFile file;
  const std::string begin = "base = \"votes\"\n[weight]\n";
  const Mistake mistakes[] = {
      {"lr = \"fast\"", "'lr' has the wrong type; expected a number, got \"fast\""},
      {"lr = true", "'lr' has the wrong type; expected a number, got true"},
      {"lr = [1]", "'lr' has the wrong type; expected a number, got a list, a table or a date"},
      {"threshold = 0.5",
       "'threshold' has the wrong type; expected a whole number without point and exponent, "
       "got 0.5"},
      {"window = 1e1",
       "'window' has the wrong type; expected a whole number without point and "
       "exponent, got 10.0"},
      {"threshold = 127", "threshold = 127 is outside 0..126"},
      {"lr = -1", "lr = -1 is outside [0, 1e6)"},
      {"head_lr = -1", "head_lr = -1 is outside [0, 1e6); it is a share of lr"},
      {"head_lr = 100\nlr = 1e5", "head_lr = 100 times lr = 100000 must be below 1e6"},
      {"head_lr = 1e6", "head_lr = 1e+06 is outside [0, 1e6); it is a share of lr"},
      {"warmup = -1", "warmup = -1 is outside [0, 1]; it is a share of all steps"},
      {"decay = 2", "decay = 2 is outside [0, 1]; it is a share of all steps"},
      {"final = 2", "final = 2 is outside [0, 1]; it is a share of lr"},
      {"window = 256", "microadam: window = 256 is outside 1..255"},
      {"bucket = 5000", "microadam: bucket = 5000 is outside 2..4096"},
      {"feedback_bits = 99999999999",
       "microadam: feedback_bits = 99999999999 is neither 0 (no error feedback) nor 2 to 8"},
      {"format = \"int2\"",
       "'format': unknown format 'int2'; did you mean 'int8'? Known: fp32, bf16, split24, split32, "
       "fp8, int8, int4, ternary, latent8, latent6, latent5, latent4, shared4, shared8, shared16, "
       "trits, ternary_master, fp8_master, int4_master"},
      {"m = \"x\"", "'m': unknown format 'x'; known: fp32, bf16, companded8, int8, int4"}};
  for (const Mistake& mistake : mistakes) {
    CHECK(file.refused(begin + mistake.text + "\n") ==
          std::string("recipe 'PATH', [weight], line 3: ") + mistake.message);
  }
  const std::string unknown = file.refused(begin + "elephant = 1\n");
  CHECK(unknown.starts_with("recipe 'PATH', [weight], line 3: unknown key 'elephant'; known: "));
  CHECK(contains(unknown, "beta1, beta2, bucket"));
  // Overrides and built-in recipes have no lines.
  CHECK(on_votes("weight.lr=-1") == "recipe 'votes', [weight]: lr = -1 is outside [0, 1e6)");
  // A file may change a key of its base; the line is the file's.
  CHECK(contains(file.refused("base = \"votes\"\n\n\ngradients = \"x\"\n"), "'PATH', line 4: "));
}

TEST_CASE("recipe errors: an eps that fp32 does not hold") {
  const auto message = [](const std::string& eps) {
    return refusal([&] { load_recipe("fp32", {"weight.eps=" + eps}); });
  };
  CHECK(contains(message("1e-60"), "eps = 1e-60 becomes 0 in fp32"));
  CHECK(contains(message("1e60"), "eps = 1e+60 becomes infinite in fp32"));
  CHECK(contains(message("0.0"), "eps = 0 must be positive and finite"));
  CHECK(message("1e-30").empty());
}

TEST_CASE("recipe errors: hysteresis goes as far as the format of the weights takes it") {
  struct Highest {
    const char* recipe;
    int hysteresis;
  };
  for (const Highest& highest :
       {Highest{"latent8", Latent8::kThreshold}, Highest{"latent6", LatentPacked<6>::kThreshold},
        Highest{"latent5", LatentPacked<5>::kThreshold},
        Highest{"latent4", LatentPacked<4>::kThreshold}}) {
    CAPTURE(highest.recipe);
    const auto set = [](int levels) { return concat("weight.hysteresis=", levels); };
    const Recipe loaded = load_recipe(highest.recipe, {set(highest.hysteresis)});
    CHECK(loaded.group(Role::kWeight).format.flips.hysteresis == highest.hysteresis);
    CHECK(refusal([&] {
            load_recipe(highest.recipe, {set(highest.hysteresis + 1)});
          }).find(concat("is outside 0..", highest.hysteresis)) != std::string::npos);
  }
}

}  // namespace tritgrad::test::test_recipe_errors
