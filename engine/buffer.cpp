#include "engine/buffer.h"

#include <cstring>
#include <new>

#include "engine/check.h"

namespace tritgrad {

Buffer::Buffer(std::size_t bytes, Category category) : size_(bytes), category_(category) {
  if (bytes == 0) return;
  data_ =
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  check(data_ != nullptr, "out of memory: ", bytes, " bytes of ", category_name(category),
        " cannot be allocated; use a smaller model or batch");
  std::memset(data_, 0, bytes);
  ledger::acquire(category, bytes);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  ledger::release(category_, size_);
  ::operator delete (data_, std::align_val_t{kAlignment});
}

}  // namespace tritgrad
