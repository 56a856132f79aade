# `cpack -G DEB`, in a build folder where tritgrad_cli and tritgrad_c are built: one Debian package of all that
# is installed, with the Python package. It is for the Debian that it was built on, whose libraries it names.
set(CPACK_PACKAGE_NAME tritgrad)
set(CPACK_PACKAGE_CONTACT "The tritgrad authors <tritgrad@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks in ternary weights on CPUs")
set(CPACK_PACKAGE_DESCRIPTION
    "An engine that trains neural networks in ternary and other low-precision
weights, without keeping full-precision master weights: a command line,
libraries for C and C++, and a package for Python with scikit-learn's habits.")
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)

# ---- what is in it: everything, the Python package too, where Debian's Pythons look -----------------------------
# (A component of its own, because other prefixes have no folder that every Python searches: there it is pip's.)
set(python_folder lib/python3/dist-packages)
install(
  DIRECTORY tools/python/tritgrad
  DESTINATION "${python_folder}"
  COMPONENT debian EXCLUDE_FROM_ALL
  FILES_MATCHING
  PATTERN "*.py"
  PATTERN "py.typed"
  PATTERN "__pycache__" EXCLUDE)
set(changelog "${PROJECT_BINARY_DIR}/cmake/changelog.gz")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS CHANGELOG.md)
file(ARCHIVE_CREATE OUTPUT "${changelog}" PATHS "${PROJECT_SOURCE_DIR}/CHANGELOG.md" FORMAT raw
     COMPRESSION GZip COMPRESSION_LEVEL 9)
install(FILES cmake/debian/copyright "${changelog}" DESTINATION share/doc/tritgrad
        COMPONENT debian EXCLUDE_FROM_ALL)

# The manual page is the program's own --help. (A component of its own, because help2man is needed to make it.)
set(manual_page "${PROJECT_BINARY_DIR}/cmake/tritgrad.1")
install(CODE "set(program \"$<TARGET_FILE:tritgrad_cli>\")\nset(manual_page \"${manual_page}\")" COMPONENT manual
        EXCLUDE_FROM_ALL)
install(SCRIPT cmake/debian/manual_page.cmake COMPONENT manual EXCLUDE_FROM_ALL)
install(FILES "${manual_page}.gz" DESTINATION share/man/man1 COMPONENT manual EXCLUDE_FROM_ALL)

set(CPACK_COMPONENTS_ALL Unspecified debian manual)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)

# ---- what Debian is told -------------------------------------------------------------------------------------------
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-sklearn, python3-pandas")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian "${PROJECT_SOURCE_DIR}/cmake/debian")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${debian}/postinst;${debian}/prerm;${debian}/triggers")
include(CPack)
