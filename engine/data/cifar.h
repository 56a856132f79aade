// The original binary files of CIFAR-10: records of 3073 bytes and nothing else.
//
// A record is one byte of label, 0..9, then an image of 32 x 32: 1024 bytes of red, 1024 of green,
// 1024 of blue, each row by row from the top. In memory the channels of a pixel lie beside each
// other, as ImageShape says. The names of the ten classes are those of the authors' list;
// batches.meta.txt, which repeats them, is not read.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/dataset.h"

namespace tritgrad {

inline constexpr ImageShape kCifarImage{32, 32, 3};

// The records of one file. `where` names the source in messages and the data set.
Dataset parse_cifar(std::string_view bytes, const std::string& where);

// The six files of a folder: data_batch_1.bin to data_batch_5.bin, then test_batch.bin, which is
// the published test set. Each may hold any number of records.
Dataset read_cifar_folder(const std::string& folder, const std::string& name);

// Whether the folder holds any of the six.
bool has_cifar_files(const std::string& folder);

}  // namespace tritgrad
