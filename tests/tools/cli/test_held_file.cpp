// Files that one run at a time writes to.
#include <doctest/doctest.h>

#include "models/training/saved_run.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"
#include "tools/cli/held_file.h"

namespace tritgrad::test::test_held_file {

TEST_CASE("held file: a second holder is refused, by whatever name, until the first is gone") {
  const TempDir folder;
  const std::string path = folder.write("run.st", "");
  std::filesystem::create_symlink(path, folder / "link.st");
  {
    const HeldFile held("--save", path);
    for (const std::string& name : {path, (folder / "link.st").string()}) {
      CHECK(refusal([&] { const HeldFile second("--save", name); }) ==
            "--save: another run is writing to '" + name +
                "'; wait until it is over, or name another file");
    }
    CHECK(refusal([&] { const HeldFile other("--save", folder / "other.st"); }).empty());
  }
  CHECK_FALSE(std::filesystem::exists(path + ".lock"));
  folder.write("run.st.lock", "mine");
  CHECK(contains(refusal([&] { const HeldFile held("--save", path); }), ".lock' is not empty"));
  CHECK(read_text(path + ".lock") == "mine");
  folder.write("run.st.lock", "");  // left by a process that was killed
  CHECK(refusal([&] { const HeldFile again("--save", path); }).empty());
  CHECK(refusal([] { const HeldFile a("--log", ""), b("--log", "/dev/null"); }).empty());
}

TEST_CASE("held file: a run neither replaces what is no checkpoint nor what another run writes") {
  const TempDir folder;
  const std::string train = "train --data iris --epochs 1 --quiet --save ";
  const std::string table = folder.write("table.csv", "a,b\n1,2\n");
  const Result refused = run(train + table);
  CHECK(refused.exit_code != 0);
  CHECK(contains(refused.err, "--save: '" + table +
                                  "' is there and is no checkpoint, or a damaged one; delete it, "
                                  "or name another file"));
  CHECK(read_text(table) == "a,b\n1,2\n");

  const std::string save = folder.write("run.st", "");  // as mktemp leaves it
  CHECK(run(train + save).exit_code == 0);
  CHECK(is_replaceable(save));
  CHECK(run(train + save).exit_code == 0);
  const HeldFile held("--save", save);
  CHECK(contains(run(train + save).err, "another run is writing to '" + save + "'"));
}

}  // namespace tritgrad::test::test_held_file
