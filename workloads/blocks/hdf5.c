/* SPDX-License-Identifier: Apache-2.0
 * Blocks as hyperslabs of one data set, "words", through parallel HDF5. */
#include <hdf5.h>

#include "blocks.h"

static hid_t file, set, transfer;

/* HDF5 tells the rest on standard error itself. */
static const char *failed(const char *call, int64_t result) { return result < 0 ? call : NULL; }

static hid_t access_of(const struct blocks_options *o) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, o->hints);
  transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, o->collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  return access;
}

static const char *create(const struct blocks_options *o) {
  const hid_t access = access_of(o),
              space = H5Screate_simple(1, (hsize_t[]){(hsize_t)o->words}, NULL);
  file = H5Fcreate(o->file, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  if (file < 0) return "H5Fcreate";
  set = H5Dcreate2(file, "words", H5T_NATIVE_UINT64, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Sclose(space);
  return failed("H5Dcreate", set);
}

static const char *open_again(const struct blocks_options *o) {
  const hid_t access = access_of(o);
  file = H5Fopen(o->file, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  if (file < 0) return "H5Fopen";
  set = H5Dopen2(file, "words", H5P_DEFAULT);
  return failed("H5Dopen", set);
}

/* The data set's space with the words selected, and that of the memory. */
static hid_t select_words(int64_t first, int64_t count, hid_t *memory) {
  const hid_t space = H5Dget_space(set);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){(hsize_t)first}, NULL,
                      (hsize_t[]){(hsize_t)count}, NULL);
  *memory = H5Screate_simple(1, (hsize_t[]){(hsize_t)count}, NULL);
  return space;
}

static const char *write_words(int64_t first, int64_t count, const uint64_t *words) {
  hid_t memory;
  const hid_t space = select_words(first, count, &memory);
  const herr_t result = H5Dwrite(set, H5T_NATIVE_UINT64, memory, space, transfer, words);
  H5Sclose(memory), H5Sclose(space);
  return failed("H5Dwrite", result);
}

static const char *read_words(int64_t first, int64_t count, uint64_t *words) {
  hid_t memory;
  const hid_t space = select_words(first, count, &memory);
  const herr_t result = H5Dread(set, H5T_NATIVE_UINT64, memory, space, transfer, words);
  H5Sclose(memory), H5Sclose(space);
  return failed("H5Dread", result);
}

static const char *close_file(void) {
  H5Pclose(transfer);
  const herr_t closed = H5Dclose(set);
  return closed < 0 ? "H5Dclose" : failed("H5Fclose", H5Fclose(file));
}

const struct blocks_api kBlocksHdf5 = {"hdf5",      create,     open_again,
                                       write_words, read_words, close_file};
