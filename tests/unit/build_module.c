// SPDX-License-Identifier: BSD-3-Clause
// A module as libibcoll.so loads them: of another build, of one that does not say which, or of this one.
#ifdef IBCOLL_BUILD
const char ibcoll_module_build[] = IBCOLL_BUILD;
#endif
void ibcoll_of_module(void) {}
