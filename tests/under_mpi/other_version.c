/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Before libibcoll.so, for one rank: what it would answer in another version. */
const char* ibcoll_version_string(void);
const char* ibcoll_version_string(void) { return "0.1.99"; }
