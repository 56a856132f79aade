// Which kernel table is used: the best one, lowered by TRITGRAD_ISA.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "engine/check.h"
#include "ops/kernels/targets.h"
#include "tests/support/panel_products.h"

namespace tritgrad::test::test_dispatch {
namespace {

struct FakeTables {
  static KernelTables named(const char* name) {
    KernelTables tables = reference_kernels();
    tables.name = name;
    return tables;
  }
  std::string choose(std::size_t supported, const char* requested) const {
    const std::array<const KernelTables*, 6> all = {&reference,  &avx2,       &avx512,
                                                    &avx512vnni, &avx512vbmi, &avx512amx};
    return choose_kernels(std::span(all).first(supported), requested).name;
  }
  const KernelTables reference = named("reference"), avx2 = named("avx2"), avx512 = named("avx512"),
                     avx512vnni = named("avx512vnni"), avx512vbmi = named("avx512vbmi"),
                     avx512amx = named("avx512amx");
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
  for (const KernelTables* table : supported_kernels()) {
    use_kernels(table->name);
    CHECK(&kernels() == table);
  }
  use_kernels(before.c_str());
  CHECK_THROWS_AS(use_kernels("avx9000"), Error);
  CHECK(kernels().name == before);
}

#if defined(__linux__) && defined(__x86_64__)
constexpr char kNoTiles[] = "skipped: avx512amx, no tiles here";

bool has_tiles() {
  for (const KernelTables* table : supported_kernels()) {
    if (std::string(table->name) == "avx512amx") return true;
  }
  return false;
}

// What Linux says it can give (ARCH_GET_XCOMP_SUPP), and what the processor says of itself.
TEST_CASE("dispatch: tiles are used where processor and system have them, and are not ruled out") {
  std::ifstream cpuinfo("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(cpuinfo), {}};
  std::uint64_t given = 0;
  const bool asked = syscall(SYS_arch_prctl, 0x1021, &given) == 0;
  const bool there = text.find(" amx_int8") != std::string::npos && asked && (given >> 18 & 1) == 1;
  const char* isa = std::getenv("TRITGRAD_ISA");
  const bool allowed = isa == nullptr || *isa == '\0' || std::string(isa) == "avx512amx";
  const bool portable = supported_kernels().size() == 1;  // TRITGRAD_PORTABLE
  CHECK(has_tiles() == (there && allowed && !portable));
  if (!has_tiles()) MESSAGE(kNoTiles);
}

// As oneDNN does after a product of its own.
TEST_CASE("dispatch: a product does not rely on the tiles that the last one left") {
  if (!has_tiles()) {
    MESSAGE(kNoTiles);
    return;
  }
  check_products_between(supported_kernels().back()->products, [] {
    asm volatile(".byte 0xC4, 0xE2, 0x78, 0x49, 0xC0");  // tilerelease
  });
}
#endif

// A table is nothing but pointers, and whatever is forgotten in it is null.
template <typename Table>
std::int64_t count_missing(const Table& table) {
  static_assert(sizeof(Table) % sizeof(void*) == 0);
  std::array<const void*, sizeof(Table) / sizeof(void*)> pointers;
  std::memcpy(pointers.data(), &table, sizeof table);
  return std::count(pointers.begin(), pointers.end(), nullptr);
}

TEST_CASE("dispatch: the reference comes first and every table is complete") {
  CHECK(std::string(supported_kernels().front()->name) == "reference");
  for (const KernelTables* tables : supported_kernels()) {
    CAPTURE(tables->name);
    CHECK(count_missing(tables->products) == 0);
    CHECK(count_missing(tables->codecs) == 0);
    CHECK(count_missing(tables->updates) == 0);
    CHECK(count_missing(tables->layers) == 0);
    CHECK(count_missing(tables->reductions) == 0);
  }
}

}  // namespace
}  // namespace tritgrad::test::test_dispatch
