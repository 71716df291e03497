/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes an OTF2 archive as Score-P does for two ranks on two nodes: write_otf2 FOLDER. Of each kind of call one in a
 * microsecond, and an iallreduce. */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 2, BYTES = 800 };

static OTF2_FlushType flush(void* data, OTF2_FileType type, OTF2_LocationRef at, void* caller, bool final) {
  (void)data, (void)type, (void)at, (void)caller, (void) final;
  return OTF2_FLUSH;
}
static OTF2_FlushCallbacks flushes = {flush, NULL};

static void collective(OTF2_EvtWriter* out, uint64_t* now, OTF2_CollectiveOp op, uint32_t root, uint64_t sent,
                       uint64_t received) {
  OTF2_EvtWriter_Enter(out, NULL, *now, 0);     /* solve */
  OTF2_EvtWriter_Enter(out, NULL, *now + 1, 1); /* MPI_... */
  OTF2_EvtWriter_MpiCollectiveBegin(out, NULL, *now + 2);
  OTF2_EvtWriter_MpiCollectiveEnd(out, NULL, *now + 900, op, 0, root, sent, received);
  OTF2_EvtWriter_Leave(out, NULL, *now + 901, 1);
  OTF2_EvtWriter_Leave(out, NULL, *now + 902, 0);
  *now += 10000;
}

static void events(OTF2_Archive* archive, uint64_t rank) {
  OTF2_EvtWriter* const out = OTF2_Archive_GetEvtWriter(archive, rank);
  uint64_t now = 1000 + 50 * rank;
  const uint64_t all = RANKS * BYTES;
  collective(out, &now, OTF2_COLLECTIVE_OP_BARRIER, OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
  collective(out, &now, OTF2_COLLECTIVE_OP_BCAST, 1, rank == 1 ? all : 0, BYTES);
  collective(out, &now, OTF2_COLLECTIVE_OP_ALLREDUCE, OTF2_COLLECTIVE_ROOT_NONE, all, all);
  collective(out, &now, OTF2_COLLECTIVE_OP_ALLTOALLV, OTF2_COLLECTIVE_ROOT_NONE, all, all);
  collective(out, &now, OTF2_COLLECTIVE_OP_GATHERV, 0, BYTES + 8 * rank, rank == 0 ? all + 8 : 0);
  OTF2_EvtWriter_NonBlockingCollectiveRequest(out, NULL, now, 7);
  OTF2_EvtWriter_NonBlockingCollectiveComplete(out, NULL, now + 5000, OTF2_COLLECTIVE_OP_ALLREDUCE, 0,
                                               OTF2_COLLECTIVE_ROOT_NONE, all, all, 7);
  OTF2_Archive_CloseEvtWriter(archive, out);
}

static void definitions(OTF2_Archive* archive) {
  static const char* const texts[] = {"", "solve", "MPI_Call", "solver.c", "group"};
  const uint64_t ranks[RANKS] = {0, 1};
  OTF2_GlobalDefWriter* const out = OTF2_Archive_GetGlobalDefWriter(archive);
  OTF2_GlobalDefWriter_WriteClockProperties(out, 1000000000, 0, 1000000, OTF2_UNDEFINED_TIMESTAMP);
  for (uint32_t i = 0; i < sizeof texts / sizeof *texts; ++i) OTF2_GlobalDefWriter_WriteString(out, i, texts[i]);
  OTF2_GlobalDefWriter_WriteRegion(out, 0, 1, 1, 0, OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_COMPILER,
                                   OTF2_REGION_FLAG_NONE, 3, 42, 50);
  OTF2_GlobalDefWriter_WriteRegion(out, 1, 2, 2, 0, OTF2_REGION_ROLE_COLL_OTHER, OTF2_PARADIGM_MPI,
                                   OTF2_REGION_FLAG_NONE, 0, 0, 0);
  OTF2_GlobalDefWriter_WriteSystemTreeNode(out, 0, 0, 0, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    OTF2_GlobalDefWriter_WriteSystemTreeNode(out, 1 + rank, 0, 0, 0);
    OTF2_GlobalDefWriter_WriteLocationGroup(out, rank, 0, OTF2_LOCATION_GROUP_TYPE_PROCESS, 1 + rank,
                                            OTF2_UNDEFINED_LOCATION_GROUP);
    OTF2_GlobalDefWriter_WriteLocation(out, rank, 0, OTF2_LOCATION_TYPE_CPU_THREAD, 32, rank);
  }
  OTF2_GlobalDefWriter_WriteGroup(out, 0, 4, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                  RANKS, ranks);
  OTF2_GlobalDefWriter_WriteGroup(out, 1, 4, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, RANKS,
                                  ranks);
  OTF2_GlobalDefWriter_WriteComm(out, 0, 0, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
  OTF2_Archive_CloseGlobalDefWriter(archive, out);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  OTF2_Archive* const archive = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, 1 << 20, 1 << 20,
                                                  OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (!archive) return 1;
  OTF2_Archive_SetFlushCallbacks(archive, &flushes, NULL);
  OTF2_Archive_SetSerialCollectiveCallbacks(archive);
  OTF2_Archive_OpenEvtFiles(archive);
  for (uint64_t rank = 0; rank < RANKS; ++rank) events(archive, rank);
  OTF2_Archive_CloseEvtFiles(archive);
  OTF2_Archive_OpenDefFiles(archive);
  for (uint64_t rank = 0; rank < RANKS; ++rank)
    OTF2_Archive_CloseDefWriter(archive, OTF2_Archive_GetDefWriter(archive, rank));
  OTF2_Archive_CloseDefFiles(archive);
  definitions(archive);
  return OTF2_Archive_Close(archive) == OTF2_SUCCESS ? 0 : 1;
}
