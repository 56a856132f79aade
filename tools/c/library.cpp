// The functions of tritgrad.h that need no handle.
#include <new>
#include <string>
#include <string_view>

#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "engine/version.h"
#include "tools/c/border.h"
#include "tools/inspect/recipe_list.h"

namespace tritgrad {

namespace {

thread_local Failure last_of_thread;

// The beginning and the end of a long sentence, whole characters of UTF-8.
std::string shortened(const std::string& sentence) {
  constexpr std::size_t kMost = 1000, kHead = 600;
  const std::string_view gap = " ... ";
  if (sentence.size() <= kMost) return sentence;
  const auto is_within = [&](std::size_t at) { return (sentence[at] & 0xC0) == 0x80; };
  std::size_t head = kHead, tail = sentence.size() - (kMost - kHead - gap.size());
  while (is_within(head)) --head;
  while (is_within(tail)) ++tail;
  return concat(sentence.substr(0, head), gap, sentence.substr(tail));
}

}  // namespace

const Failure& last_failure() { return last_of_thread; }

tg_status keep_failure(tg_status status, std::string_view sentence) noexcept {
  try {
    last_of_thread = {status, shortened(printable(as_utf8(sentence)))};
  } catch (const std::bad_alloc&) {
    last_of_thread.status = TG_MEMORY;
    last_of_thread.sentence = "out of memory";  // so short that it takes none
  }
  return last_of_thread.status;
}

}  // namespace tritgrad

using namespace tritgrad;

int tg_abi_version(void) { return TG_ABI_VERSION; }
const char* tg_version(void) { return version(); }
const char* tg_error(void) { return last_failure().sentence.c_str(); }
tg_status tg_error_status(void) { return last_failure().status; }

tg_status tg_set_threads(int threads) {
  return status_of([&] {
    check(threads >= 0 && threads <= 1024, "threads: ", threads, " found, 0 to 1024 expected");
    set_thread_count(threads);
  });
}

const char* tg_recipes(void) {
  return pointer_of([]() -> const char* {
    static const std::string text = to_json(list_builtin_recipes());
    return text.c_str();
  });
}
