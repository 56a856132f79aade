// Which kernel table is used: the best one, lowered by TRITGRAD_ISA.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "engine/check.h"
#include "ops/kernels/dispatch.h"

namespace tritgrad {
namespace {

struct FakeTables {
  FakeTables() {
    reference.name = "reference";
    avx2.name = "avx2";
    avx512.name = "avx512";
    avx512vnni.name = "avx512vnni";
    avx512vbmi.name = "avx512vbmi";
    avx512amx.name = "avx512amx";
  }
  std::string choose(std::size_t supported, const char* requested) const {
    const std::array<const KernelTable*, 6> all = {&reference,  &avx2,       &avx512,
                                                   &avx512vnni, &avx512vbmi, &avx512amx};
    return choose_kernels(std::span(all).first(supported), requested).name;
  }
  KernelTable reference{}, avx2{}, avx512{}, avx512vnni{}, avx512vbmi{}, avx512amx{};
};

TEST_CASE("dispatch: without a request the best table is chosen") {
  const FakeTables tables;
  CHECK(tables.choose(1, nullptr) == "reference");
  CHECK(tables.choose(2, nullptr) == "avx2");
  CHECK(tables.choose(3, nullptr) == "avx512");
  CHECK(tables.choose(3, "") == "avx512");
}

TEST_CASE("dispatch: TRITGRAD_ISA lowers and never raises") {
  const FakeTables tables;
  CHECK(tables.choose(3, "reference") == "reference");
  CHECK(tables.choose(3, "avx2") == "avx2");
  CHECK(tables.choose(3, "avx512") == "avx512");
  CHECK(tables.choose(2, "avx512") == "avx2");
  CHECK(tables.choose(4, "avx512") == "avx512");
  CHECK(tables.choose(4, "avx512vnni") == "avx512vnni");
  CHECK(tables.choose(3, "avx512vnni") == "avx512");
  CHECK(tables.choose(5, "avx512vnni") == "avx512vnni");
  CHECK(tables.choose(5, "avx512vbmi") == "avx512vbmi");
  CHECK(tables.choose(4, "avx512vbmi") == "avx512vnni");
  CHECK(tables.choose(6, "avx512vbmi") == "avx512vbmi");
  CHECK(tables.choose(6, "avx512amx") == "avx512amx");
  CHECK(tables.choose(5, "avx512amx") == "avx512vbmi");
  CHECK(tables.choose(1, "avx512") == "reference");
  CHECK(tables.choose(1, "avx2") == "reference");
}

TEST_CASE("dispatch: an unknown TRITGRAD_ISA is refused with the accepted values") {
  const FakeTables tables;
  for (const char* unknown : {"avx", "AVX2", "avx512 ", "best"}) {
    CHECK_THROWS_WITH_AS(
        tables.choose(3, unknown),
        ("TRITGRAD_ISA is '" + std::string(unknown) +
         "'; set it to reference, avx2, avx512, avx512vnni, avx512vbmi or avx512amx, or unset it")
            .c_str(),
        Error);
  }
}

TEST_CASE("dispatch: use_kernels selects any supported table and refuses others") {
  const std::string before = kernels().name;
  for (const KernelTable* table : supported_kernels()) {
    use_kernels(table->name);
    CHECK(&kernels() == table);
  }
  use_kernels(before.c_str());
  CHECK_THROWS_AS(use_kernels("avx9000"), Error);
  CHECK(kernels().name == before);
}

TEST_CASE("dispatch: the reference comes first and every table is complete") {
  CHECK(std::string(supported_kernels().front()->name) == "reference");
  // Nothing but pointers: whatever is forgotten is null.
  constexpr std::size_t kPointers = sizeof(KernelTable) / sizeof(void*);
  static_assert(sizeof(KernelTable) % sizeof(void*) == 0 && kPointers > 50);
  for (const KernelTable* table : supported_kernels()) {
    CAPTURE(table->name);
    std::array<const void*, kPointers> pointers;
    std::memcpy(pointers.data(), table, sizeof *table);
    CHECK(std::count(pointers.begin(), pointers.end(), nullptr) == 0);
  }
}

}  // namespace
}  // namespace tritgrad
