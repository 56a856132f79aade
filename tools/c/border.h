// What nothing may cross: an exception on its way into a program in C becomes a code and a
// sentence.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "engine/check.h"
#include "models/training/observer.h"
#include "tools/c/tritgrad.h"

namespace tritgrad {

// The last failure in the calling thread.
struct Failure {
  tg_status status = TG_OK;
  std::string sentence;
};
const Failure& last_failure();

// Keeps a failure for last_failure() and returns its status. Of a long sentence, which holds a long
// text of the caller's, the middle is left out; control characters become '?', as the command line
// has them.
tg_status keep_failure(tg_status status, std::string_view sentence) noexcept;

// Returns body(), or what `failed` makes of the status if it throws; the sentence is kept.
template <typename Body, typename Failed>
auto guarded(const Body& body, const Failed& failed) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return failed(keep_failure(TG_MEMORY, "there is not enough memory"));
  } catch (const OutOfMemory& error) {
    return failed(keep_failure(TG_MEMORY, error.what()));
  } catch (const NotFound& error) {
    return failed(keep_failure(TG_NOT_FOUND, error.what()));
  } catch (const Interrupted& error) {
    return failed(keep_failure(TG_INTERRUPTED, error.what()));
  } catch (const Diverged& error) {
    return failed(keep_failure(TG_DIVERGED, error.what()));
  } catch (const std::exception& error) {
    return failed(keep_failure(TG_INVALID, error.what()));
  }
}

template <typename Body>
tg_status status_of(const Body& body) noexcept {
  return guarded(
      [&] {
        body();
        return TG_OK;
      },
      [](tg_status status) { return status; });
}

// Returns the pointer that body() returns, or null.
template <typename Body>
auto pointer_of(const Body& body) noexcept {
  return guarded(body, [](tg_status) { return decltype(body())(nullptr); });
}

template <typename Handle>
Handle& of(Handle* handle, const char* what) {
  check(handle != nullptr, what, ": NULL found, a handle expected");
  return *handle;
}

// A text that must be there: "path: NULL found, the name of a file expected".
inline const char* text_of(const char* text, const char* what, const char* expected) {
  check(text != nullptr, what, ": NULL found, ", expected, " expected");
  return text;
}

}  // namespace tritgrad
