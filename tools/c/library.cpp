// The functions of tritgrad.h that need no handle.
#include <string>

#include "engine/memory/parallel.h"
#include "engine/version.h"
#include "tools/c/border.h"
#include "tools/inspect/recipe_list.h"

namespace tritgrad {

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

}  // namespace tritgrad

using namespace tritgrad;

int tg_abi_version(void) { return TG_ABI_VERSION; }
const char* tg_version(void) { return version(); }
const char* tg_error(void) { return last_error().c_str(); }

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
