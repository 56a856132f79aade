"""What becomes of each command of the documents: how it is run in a quick form, or which test runs it.

A command that nothing here knows makes the test fail."""

PAGES = ("README.md", "HACKING.md", "docs/*.md")

# First words by which a line of a block of code, or a piece of code in a sentence, is a command.
PROGRAMS = ("tritgrad", "mpirun", "bash", "python3", "pip", "cmake", "ctest", "cc", "node", "npm", "tail", "mv", "zcat",
            "spm_train", "llama-cli", "build/debug/tritgrad_tests", "build/release/tritgrad_tests")

# Commands that are run as they stand, but for these replacements, one after the other.
RUN = r"(tritgrad|mpirun|tail|mv|spm_train) "
QUICK = (
    # Names that stand for values.
    (r"\bRECIPE\b", "latent8"), (r"\bDATA\b", "digits"), (r"\bMODEL\b", "mlp:8"), (r"\bFORMAT\b", "bf16"),
    (r"\bRATE\b", "0.02"), (r"--seed S\b", "--seed 1"), (r"=T\b", "=42"), (r"\bSHARE\b", "0.1"), (r"--epochs N\b", "--epochs 1"),
    (r"linear\|sqrt", "linear"),
    # Texts by these names have the bytes of what is fetched, or are refused.
    (r"--data (sotu|austen)", "--data text:novel.txt"),
    # Less of everything.
    (r"\b(train|compare) (?!.*(--epochs|--resume|--plan))", r"\1 --epochs 1 "),
    (r"\b(train|compare) (?=.*llama)(?!.*--epoch-tokens)", r"\1 --epoch-tokens 500 "),
    (r"compare (?!.*(--seeds|--plan))", "compare --seeds 1 "),
    (r"--(epochs|seeds|rounds|tune) [0-9]+", r"--\1 1"), (r" --tune-epochs [0-9]+", ""),
    (r"--epoch-tokens [0-9]+", "--epoch-tokens 500"), (r"--length [0-9]+", "--length 5"),
    (r"--vocab_size=[0-9]+", "--vocab_size=400"),
    (r"bench (?!.*--model)", "bench --model mlp:8-8-2 "), (r"bench (?!.*--rounds)", "bench --rounds 1 "),
    (r"bench (?=.*--model (conv|llama))", "bench --batch 1 "), (r"--batch 1 (.*)--batch [0-9]+", r"\1--batch 1"),
    # Updates of large matrices take no smaller ones.
    (r"(bench .*)passes", r"\1steps"),
    (r"reproduce \w+", r"\g<0> --epochs 2 --seeds 1 --largest 10000"),
    (r"mpirun -n", "mpirun --oversubscribe --bind-to none -n"),
)
# The same for files of comparisons.
QUICK_PLAN = ((r'"(sotu|austen)"', '"text:novel.txt"'),
              (r"(?m)^(epochs|seeds|tune) = [0-9]+", r"\1 = 1"), (r"(?m)^tune-epochs = [0-9]+\n", ""),
              (r"(?m)^epoch-tokens = [0-9]+", "epoch-tokens = 500"))

# Commands that a test runs already: a pattern, the test's file, and what is in it, comments left out.
ELSEWHERE = (
    (r"bash tools/quickstart\.sh", "tools/scripts/bare_debian.sh", "tools/quickstart.sh"),
    (r"bash tools/test\.sh", "tools/scripts/bare_debian.sh", "tools/test.sh"),
    (r"bash tools/scripts/package\.sh", "tools/scripts/bare_debian.sh", "tools/scripts/package.sh"),
    (r"bash tools/scripts/torture\.sh \d+", "tools/test.sh", "tools/scripts/torture.sh"),
    (r"bash tools/scripts/soak\.sh \d+", "tools/test.sh", "tools/scripts/soak.sh"),
    (r"bash tests/scripts/matrix_of_bits\.sh \S+ \S+", "tests/CMakeLists.txt", "scripts/matrix_of_bits.sh"),
    (r"bash tests/scripts/(cortex_m4|onnx|predicted_values)\.sh [^|]+", "tests/CMakeLists.txt", "{0}"),
    (r"python3 tools/scripts/compare_builds\.py OLD NEW", "tests/scripts/compare_builds.sh", "tools/scripts/compare_builds.py"),
    (r"python3 tools/scripts/python_overhead\.py .*", "tools/python/tests/test_overhead.py", "python_overhead.py"),
    (r"python3 tools/scripts/claim_of_apmsqueeze\.py .*", "tests/scripts/mpi.sh", "claim_of_apmsqueeze.py"),
    (r"bash tools/scripts/time_exports\.sh .*", "tests/scripts/numpy_torch.sh", "tools/scripts/time_exports.sh"),
    (r"bash tools/scripts/seconds_to_accuracy\.sh.*", "tests/scripts/beside_torch.sh", "seconds_to_accuracy"),
    (r"python3 -m venv .* && v/bin/pip install .*", "tests/scripts/python_install.sh", "--no-build-isolation"),
    (r"pip install( \.)?", "tests/scripts/python_install.sh", "pip install"),
    (r"pip wheel --no-deps \.", "tests/scripts/python_wheel.sh", "pip wheel"),
    (r"cmake --preset (\w+) && cmake --build --preset \w+( && ctest .*)?", "tools/test.sh", "build_and_test {0}"),
    (r"ctest --preset release -R '\^(\w+)\$'", "tests/CMakeLists.txt", "NAME {0}"),
    (r"cmake --install build/release --prefix DIR", "tests/consumer/check_install.sh", "cmake --install"),
    (r"cc -std=c99 program\.c \$\(pkg-config .*\)", "tests/consumer/check_install.sh", "pkg-config"),
    (r"cc -std=c99 .* program\.c -o program -lm", "tests/tools/cli/test_cli_export.cpp", "program.c"),
    (r"tail .*\./program", "tests/tools/cli/test_cli_export.cpp", "rows right"),
    (r"npm install --ignore-scripts onnxruntime-node", "tests/scripts/onnx.sh", "onnxruntime-node"),
    (r"node classes\.mjs", "tests/scripts/onnx.sh", "classes.mjs"),
    (r"node rows\.mjs", "tests/scripts/javascript.sh", "rows.mjs"),
    (r"llama-cli .*", "tests/scripts/language_model.sh", "continue_gguf.mjs"),
    (r"tritgrad data fetch .*", "tests/tools/cli/test_fetch.cpp", "fetch"),
)

# Scripts whose command is run in a quick form, too, as the test of all of it needs a bare machine.
COMMAND_OF_SCRIPT = {"bash tools/quickstart.sh": ("tools/quickstart.sh", r"build/release/tritgrad compare (.*\\\n)*.*")}

# Scripts that need PyTorch, or a browser and MNIST, and are run by hand. Their options are looked up in their help, where they
# have one, and their text is parsed. (What bench_vs_torch.sh starts, tests/scripts/beside_torch.sh starts for a small network.)
BY_HAND = (r"bash (tools/scripts/bench_vs_torch\.sh).*",
           r"node (tests/support/javascript/(?:picture|strokes_taken)\.mjs) .*")

# Blocks of code in other languages, and what runs them.
CODE = {
    ("README.md", "cpp"): ("tests/consumer/main.cpp", "README.md"),
    ("README.md", "python"): ("tools/python/tests/test_documents.py", "README.md"),
    ("docs/C.md", "c"): ("tests/scripts/documents/run.py", "docs/C.md"),
    ("docs/EXPORT.md", "c"): ("tests/tools/cli/test_cli_export.cpp", "docs/EXPORT.md"),
    ("docs/EXPORT_PYTHON.md", "python"): ("tests/scripts/numpy_torch.sh", "docs/EXPORT_PYTHON.md"),
    ("docs/EXPORT_WEB.md", "js"): ("tests/scripts/onnx.sh", "docs/EXPORT_WEB.md"),
    ("docs/PYTHON.md", "python"): ("tools/python/tests/test_documents.py", "docs/PYTHON.md"),
    ("docs/RECIPES.md", "toml"): ("tests/scripts/documents/table.py", "mixture.toml"),
}

# What a page takes for granted, made before its commands.
SMALL_TABLE = "train --data table.csv --model mlp:4 --epochs 1 --quiet --save m.safetensors"
SMALL_DIGITS = "train --data digits --model mlp:32 --recipe latent8 --epochs 1 --quiet --save d.safetensors"
SMALL_LANGUAGE = ("train --data text:novel.txt --model llama:1,256:ff=256 --recipe latent8-lm --epochs 1 --epoch-tokens 500 --quiet "
                  "--save lm.safetensors")
BEFORE = {
    "docs/DATA.md": (SMALL_TABLE,),
    "docs/EXPORT.md": (SMALL_LANGUAGE,),
    "docs/EXPORT_PYTHON.md": (SMALL_DIGITS,),
}
# The block of docs/C.md becomes a program by these lines around it.
C_PROGRAM = """#include <tritgrad.h>
enum {{ ROWS = 200, FEATURES = 2 }};
static float x[ROWS][FEATURES];
static int64_t labels[ROWS], classes[ROWS];
int main(void) {{
  for (int i = 0; i < ROWS; i++) {{
    x[i][0] = (float)(i * 37 % 100);
    x[i][1] = (float)(i * 61 % 100);
    labels[i] = x[i][0] > x[i][1];
  }}
{}
  tg_model_close(model);
  tg_run_close(run);
  tg_data_close(data);
  return 0;
}}
"""
# A page's block of code in that language that its commands read under that name.
FILES = {"docs/RECIPES.md": ("toml", "mixture.toml")}

# Options in sentences that are those of other programs.
OTHER_OPTIONS = ("--build", "--preset", "--prefix", "--help", "--version", "--oversubscribe", "--no-build-isolation", "--no-deps",
                 "--system-site-packages", "--package", "--extended", "--launcher", "--temp")
