# SPDX-License-Identifier: BSD-3-Clause
# Writes FILE, which defines ibcoll_module_build (module.h): a digest of HEADERS, which libibcoll.so and its modules have
# in common, and of OPTIONS, what else must be the same for both.
set(all "${OPTIONS}")
foreach(header ${HEADERS})
  file(SHA256 ${header} digest)
  string(APPEND all " ${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 12 digest)
file(WRITE ${FILE} "// Made by runtime/machine/module_build.cmake.\n#include \"runtime/machine/module.h\"\n"
                   "const char ibcoll_module_build[] = \"${digest}\";\n")
