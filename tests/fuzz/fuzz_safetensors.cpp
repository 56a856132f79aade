// libFuzzer entry: any bytes are either a valid file or refused with Error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/check.h"
#include "engine/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file =
        tritgrad::SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "input");
    std::size_t used = 0;
    for (const tritgrad::StoredTensor& tensor : file.tensors()) used += tensor.bytes.size();
    if (used > size) __builtin_trap();
  } catch (const tritgrad::Error&) {
  }
  return 0;
}
