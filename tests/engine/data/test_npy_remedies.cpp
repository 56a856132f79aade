// What messages say of NumPy's arrays is run by NumPy, as it stands in the message, and what comes
// of it is read.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/data/npy_dataset.h"
#include "tests/support/readers.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_npy_remedies {
namespace {

// Debian's own, for which python3-numpy is; another python3 may come first on the path.
const std::string kPython = "/usr/bin/python3";

// Whether NumPy can run what messages say; says it if not, and fails where it must be there.
bool has_numpy() {
  static const bool found =
      std::system((kPython + " -c 'import numpy' >/dev/null 2>&1").c_str()) == 0;
  if (!found) skip_or_fail("numpy of " + kPython);
  return found;
}

void run_python(const TempDir& folder, const std::string& script) {
  CAPTURE(script);
  const std::string file = folder.write("script.py", "import numpy\n" + script);
  REQUIRE(std::system(("cd '" + folder.path().string() + "' && " + kPython + " -W ignore '" + file +
                       "' </dev/null")
                          .c_str()) == 0);
}

// The calls in a sentence, "numpy.unique(y, return_inverse=True)[1]" or "array.astype(str)", up to
// where their parentheses are closed.
std::vector<std::string> calls_in(const std::string& sentence) {
  std::vector<std::string> calls;
  for (std::size_t begin = 0; begin < sentence.size(); ++begin) {
    const std::string rest = sentence.substr(begin);
    if (!rest.starts_with("numpy.") && !rest.starts_with("array.")) continue;
    std::size_t end = rest.find_first_of("( ;)");
    if (end == std::string::npos || rest[end] != '(') continue;
    int depth = 0;
    do {
      depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
    } while (++end < rest.size() && depth > 0);
    if (end < rest.size() && rest[end] == '[') end = rest.find(']', end) + 1;
    calls.push_back(rest.substr(0, end));
    begin += end - 1;
  }
  return calls;
}

struct Refusal {
  std::string x, y;     // Python that makes the arrays
  const char* mended;   // the array that the calls of the message are for
  std::string message;  // part of it
  std::size_t calls;    // in the message
};

const std::string kX = "numpy.array([[1, 2], [3, 4], [5, 6]], 'float32')";
const std::string kY = "numpy.array([0, 1, 0])";

// What is said of the pair of files; nothing if it is read.
std::string read_pair(const TempDir& folder) {
  std::int64_t rows = 3;
  const std::string said =
      refusal([&] { rows = read_npy_pair(folder / "x.npy", folder / "y.npy").rows; });
  CHECK(rows == 3);
  return said;
}

}  // namespace

TEST_CASE("npy remedies: every call in a message makes what is read") {
  if (!has_numpy()) return;
  const std::vector<Refusal> refusals = {
      {"numpy.array([[1, 2], [3, 4], [5, 6]], object)", kY, "x", "an array of Python objects", 2},
      {kX, "numpy.array(['a', 'b', 'a'], object)", "y", "an array of Python objects", 2},
      {"numpy.ones((3, 2), 'complex64')", kY, "x", "type '<c8' found", 1},
      {"numpy.ones((3, 2), 'longdouble')", kY, "x", "a float of 2, 4 or 8 bytes or an integer", 1},
      {"numpy.array([(1, 2), (3, 4), (5, 6)], 'f4,f4')", kY, "x", "an array of records found", 1},
      {"numpy.array([['1', '2'], ['3', '4'], ['5', '6']])", kY, "x", "texts found, numbers", 1},
      {"numpy.arange(3.0)", kY, "x", "an array of 1 axis found", 1},
      {"numpy.ones((3, 2, 2))", kY, "x", "an array of 3 axes found", 2},
      {kX, "numpy.array([[0, 1], [1, 0], [0, 1]])", "y", "an array of shape 3 x 2 found", 1},
      {kX, "numpy.array([0.5, 0.25, 0.5])", "y", "integers below 2^53 expected", 1},
      {kX, "numpy.array([b'a', b'gr\\xfcn', b'a'])", "y", "the label of row 1 is no Unicode", 1},
      {kX, "numpy.array(['a', 'None', 'a'])", "y", "\"None\", which stands for a missing one", 1},
      {kX, "numpy.array([b'a', b'?', b'a'])", "y", "\"?\", which stands for a missing one", 1},
  };
  const TempDir folder;
  for (const Refusal& each : refusals) {
    CAPTURE(each.message);
    const std::string make = "x = " + each.x + "\ny = " + each.y +
                             "\nnumpy.save('x.npy', x, allow_pickle=True)\n"
                             "numpy.save('y.npy', y, allow_pickle=True)\n";
    run_python(folder, make);
    const std::string said = read_pair(folder);
    CAPTURE(said);
    CHECK(contains(said, each.message));
    const std::vector<std::string> calls = calls_in(said);
    REQUIRE(calls.size() == each.calls);
    std::size_t done = 0;
    for (const std::string& call : calls) {
      // Of two ways, one is for numbers and one for words.
      if (contains(call, "astype(str)") && std::string(each.mended) == "x") continue;
      if (contains(call, "'float32'") && std::string(each.mended) == "y") continue;
      CAPTURE(call);
      const std::string name = each.mended;
      run_python(folder,
                 make + "array = " + name + "\nnumpy.save('" + name + ".npy', " + call + ")\n");
      CHECK(read_pair(folder) == "");
      ++done;
    }
    CHECK(done >= 1);
  }
}

TEST_CASE("npy remedies: the classes that a call makes are those that it names") {
  if (!has_numpy()) return;
  const TempDir folder;
  const std::string make = "y = numpy.array(['a', 'None', 'a'])\nnumpy.save('x.npy', " + kX + ")\n";
  run_python(folder, make + "numpy.save('y.npy', y)\n");
  const std::vector<std::string> calls = calls_in(read_pair(folder));
  REQUIRE(calls.size() == 1);
  run_python(folder, make + "numpy.save('y.npy', " + calls[0] + ")\n");
  CHECK(read_npy_pair(folder / "x.npy", folder / "y.npy").class_names ==
        std::vector<std::string>{"a", "class None"});
}

TEST_CASE("npy remedies: rows that are filled or removed, files that are written anew") {
  if (!has_numpy()) return;
  const TempDir folder;
  const auto refuses = [&](const std::string& script, const std::string& message) {
    run_python(folder, script);
    CHECK(contains(read_pair(folder), message));
  };
  const auto reads = [&](const std::string& script) {
    run_python(folder, script);
    CHECK(read_pair(folder) == "");
  };
  const std::string x = "x = numpy.ones((4, 2))\nx[1, 0] = numpy.nan\n",
                    y = "y = numpy.array([0.0, numpy.inf, 1, 0])\n",
                    save = "numpy.save('x.npy', x)\nnumpy.save('y.npy', y)\n",
                    kept = "kept = numpy.isfinite(x).all(axis=1) & numpy.isfinite(y)\n";
  refuses(x + y + save, "fill or remove the row");
  reads(x + y + kept + "x, y = x[kept], y[kept]\n" + save);
  refuses("x = numpy.ones((4, 2))\n" + y + save, "fill or remove the row");
  reads("x = numpy.nan_to_num(numpy.ones((3, 2)) * numpy.nan)\ny = " + kY + "\n" + save);
  refuses("x = " + kX + "\ny = numpy.array([0, 1])\n" + save, "give files that belong together");
  reads("x = " + kX + "\ny = " + kY + "\n" + save);
  refuses("x = numpy.ones((3, 0))\n" + y + save, "save one that has rows, and features or labels");
  refuses("x = " + kX + "\ny = numpy.array([7, 7, 7])\n" + save,
          "at least two classes are needed; save the array that holds the classes");
  reads("x = " + kX + "\ny = " + kY + "\n" + save);
  write_text(folder / "x.npy", "1 2\n3 4\n5 6\n");
  CHECK(contains(read_pair(folder), "this is not a .npy file"));
  reads("numpy.save('x.npy', numpy.loadtxt('x.npy'))\n");
}

TEST_CASE("npy remedies: an archive is saved as the message says") {
  if (!has_numpy()) return;
  const TempDir folder;
  const std::string make = "path, features, labels = 'd.npz', " + kX + ", " + kY + "\n";
  run_python(folder, make + "numpy.savez(path, a=features, b=labels)\n");
  const std::string said = refusal([&] { read_npz(folder / "d.npz"); });
  const std::vector<std::string> calls = calls_in(said);
  CAPTURE(said);
  REQUIRE(calls.size() == 1);
  run_python(folder, make + calls[0] + "\n");
  CHECK(read_npz(folder / "d.npz").rows == 3);
}

}  // namespace tritgrad::test::test_npy_remedies
