"""What setuptools does for this package beyond its habits (see pyproject.toml at the root).

The library is plain C to Python, so a wheel fits every Python 3; it is linked to libraries of the
system that built it, so the wheel is for systems like that one: py3-none-linux_x86_64.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import List, Tuple

from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1 the command was the package wheel's
    from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parents[2]
# CMakeLists.txt is the one place that says the version.
VERSION = re.search(r"project\(tritgrad VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
LIBRARY = "libtritgrad_c.so"
# What CMake reads: a source distribution has it beside the Python files.
SOURCES = ("CMakeLists.txt", "CHANGELOG.md", "cmake", "engine", "models", "ops", "optim", "tools")


class BuildWithLibrary(build_py):
    """Copies the Python files, and puts the library beside them."""

    def run(self) -> None:
        if not self.editable_mode:
            # Modules of an earlier build that are no longer there would be packed again.
            shutil.rmtree(Path(self.build_lib, "tritgrad"), ignore_errors=True)
        super().run()
        self.copy_file(str(_library()), str(self._library_in_package()))

    def get_outputs(self, include_bytecode: bool = True) -> List[str]:
        return [*super().get_outputs(include_bytecode), str(self._library_in_package())]

    def get_source_files(self) -> List[str]:
        return [*super().get_source_files(), *_sources()]

    def _library_in_package(self) -> Path:
        """In an editable installation the package is the source folder itself."""
        if self.editable_mode:
            return Path(self.get_package_dir("tritgrad"), LIBRARY)
        return Path(self.build_lib, "tritgrad", LIBRARY)


class WheelOfAnyPython(bdist_wheel):
    """A wheel for every Python 3 on this kind of system."""

    def finalize_options(self) -> None:
        # So that the files go where a system keeps what is made for its processor.
        self.distribution.has_ext_modules = lambda: True
        super().finalize_options()

    def get_tag(self) -> Tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


def _sources() -> List[str]:
    """Returns what the library is built of and this file, as paths below the root."""
    found = []
    for name in SOURCES:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and not file.match("__pycache__/*") and file.suffix != ".so":
                found.append(str(file.relative_to(ROOT)))
    return found


def _library() -> Path:
    """Returns the library: the one that TRITGRAD_LIBRARY names, as at run time, else a new one."""
    named = os.environ.get("TRITGRAD_LIBRARY")
    if not named:
        return _build_library(ROOT / "build" / "python" / "cmake")
    if not Path(named).is_file():
        raise CompileError(
            f"TRITGRAD_LIBRARY is '{named}', which is no file; name a {LIBRARY} that is to be "
            "packed, or unset it to have one built"
        )
    return Path(named)


def _build_library(folder: Path) -> Path:
    """Builds the library by CMake; what was built before is not built again.

    Without MPI, whose libraries every `import tritgrad` would load: ranks are the program's.
    """
    if not shutil.which("cmake"):
        raise CompileError("cmake is not installed; " + _ADVICE)
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"]
    configure += ["-DTRITGRAD_TESTS=OFF", "-DTRITGRAD_MPI=OFF"]
    if shutil.which("ninja") and "CMAKE_GENERATOR" not in os.environ:
        configure += ["-G", "Ninja"]
    _run(configure, "configure")
    build = ["cmake", "--build", str(folder), "--target", "tritgrad_c"]
    if "CMAKE_BUILD_PARALLEL_LEVEL" not in os.environ:
        build += ["--parallel", str(os.cpu_count() or 1)]
    _run(build, "build")
    return folder / LIBRARY


_ADVICE = (
    "`bash tools/quickstart.sh` installs all that is needed on Debian and Ubuntu, and "
    "tools/scripts/setup.sh lists it"
)


def _run(command: List[str], what: str) -> None:
    if subprocess.run(command).returncode:
        raise CompileError(f"CMake could not {what} the library of tritgrad (see above); {_ADVICE}")
