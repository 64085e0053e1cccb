// SPDX-License-Identifier: Apache-2.0
#include "layers/cos/blocking.h"

#include <initializer_list>

namespace weir::layers::cos {

Tail::Tail(uint64_t size) {
  memset(image, 0, sizeof image);
  const uint64_t words = (size + kWord - 1) / kWord;
  first_block = words == 0 ? 0 : (words - 1) / (kBlockWords - 1);
  const uint64_t here = words - first_block * (kBlockWords - 1);  // data words in the first block
  const uint64_t unused_bits = (words * kWord - size) * 8;
  store_word(image, block_control(first_block, here < kBlockWords - 1 ? here : kBlockWords - 1));
  uint64_t word = 1 + here;
  from = word * kWord;
  for (const Mode mode : {kEndOfRecord, kEndOfFile, kEndOfData}) {
    if (word % kBlockWords == 0) {
      store_word(image + word * kWord, block_control(first_block + word / kBlockWords, 0));
      ++word;
    }
    const uint64_t block = first_block + word / kBlockWords;
    store_word(image + word * kWord, record_control(mode, mode == kEndOfRecord ? unused_bits : 0,
                                                    block, mode == kEndOfRecord ? block : 0));
    ++word;
  }
  bytes = (word + kBlockWords - 1) / kBlockWords * kBlock;
}

int64_t record_bytes(const uint8_t* image, uint64_t blocks, uint64_t first_block) {
  for (uint64_t block = 0; block < blocks; ++block) {
    const uint8_t* const at = image + block * kBlock;
    const uint64_t control = load_word(at);
    if (mode_of(control) != kBlockControl ||
        number_of(control) != ((first_block + block) & 0xffffff))
      return -1;
    const uint64_t word = 1 + words_to_next(control);
    if (word >= kBlockWords) continue;  // data to its end
    const uint64_t record = load_word(at + word * kWord);
    if (mode_of(record) != kEndOfRecord ||
        back_record_of(record) != ((first_block + block) & 0x7fff))
      return -1;
    const uint64_t words = (first_block + block) * (kBlockWords - 1) + word - 1;
    const uint64_t unused = unused_bits_of(record) / 8;
    return unused <= words * kWord ? static_cast<int64_t>(words * kWord - unused) : -1;
  }
  return -1;
}

}  // namespace weir::layers::cos
