// What nothing may cross: an exception on its way into a program in C becomes a code and a
// sentence.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "engine/check.h"
#include "models/training/observer.h"
#include "tools/c/tritgrad.h"

namespace tritgrad {

// The sentence of the last failure in the calling thread.
std::string& last_error();

// Returns body(), or what `failed` makes of the status if it throws; the sentence is kept.
template <typename Body, typename Failed>
auto guarded(const Body& body, const Failed& failed) noexcept {
  tg_status status = TG_INVALID;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    status = TG_MEMORY;
    last_error() = "there is not enough memory";
  } catch (const Interrupted& error) {
    status = TG_INTERRUPTED;
    last_error() = error.what();
  } catch (const Diverged& error) {
    status = TG_DIVERGED;
    last_error() = error.what();
  } catch (const std::exception& error) {
    last_error() = error.what();
  }
  return failed(status);
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
