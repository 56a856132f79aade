// Updates of a block of trits with carried errors in one pass: every table against the reference,
// for all lengths of a block, both forms of the first moment and either rounding, whatever the
// numbers. That the reference is its parts in a row, tests/optim/test_eco.cpp holds it to.
#include <doctest/doctest.h>

#include <functional>

#include "engine/formats/format.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_carry {
namespace {

constexpr std::int64_t kGroup = 32;
constexpr CarryConstants kCarry = {.lr = 0.75f, .alpha = -3.0f, .rescale = 1.25f};
constexpr RandomKey kOtherKey{.seed = 0xFEDCBA987654321ull, .stream = 78, .step = 0xFFFFFFFF};

// A block with the state of its rule, of ordinary or of awkward numbers.
struct CarryState {
  CarryState(std::int64_t n, std::int64_t offset, bool awkward)
      : grad(n, offset),
        trits((n + 4) / 5, offset),
        m(n, offset),
        codes(n, offset),
        scales((n + kGroup - 1) / kGroup, offset),
        v(n, offset) {
    const auto number = [&](std::int64_t i, std::uint32_t stream) {
      return awkward ? awkward_float(i, stream)
                     : random_normal({5, stream, 0}, static_cast<std::uint64_t>(i));
    };
    std::vector<std::int8_t> plain(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      plain[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(i * 7 % 3 - 1);
      grad[i] = number(i, 51);
      m[i] = number(i, 52);
      v[i] = awkward ? number(i, 53) : std::abs(number(i, 53));
      codes[i] = static_cast<std::int8_t>(i * 37 % 256 - 128);  // -128 reads as -127
    }
    for (std::int64_t g = 0; g < (n + kGroup - 1) / kGroup; ++g) {
      constexpr std::uint16_t kScales[] = {0x3C00, 0x3F81, 0, 0x0080, 0x7E00, 0x4000};
      scales[g] = awkward ? kScales[g % 6] : 0x3C23;
    }
    reference_kernels().codecs.encode_trits(trits.data(), plain.data(), n);
  }

  CarriedTrits at(bool in_codes, const RandomKey* trit_key, const RandomKey* m_key) {
    return {grad.data(),  trits.data(),  in_codes ? nullptr : m.data(),
            codes.data(), scales.data(), v.data(),
            &v_sum,       trit_key,      m_key,
            8 * 40};
  }

  Guarded<float> grad;
  Guarded<std::uint8_t> trits;
  Guarded<float> m;
  Guarded<std::int8_t> codes;
  Guarded<std::uint16_t> scales;
  Guarded<float> v;
  double v_sum = 0.0;
};

using Update =
    std::function<std::int64_t(const KernelTables&, const CarriedTrits&, std::int64_t n)>;

std::vector<Update> updates() {
  std::vector<Update> all;
  for (const float v : {0.3f, 0.0f, 1e-38f, std::numeric_limits<float>::infinity()}) {
    for (const float limit : {0.0f, 2.5f}) {
      const NormalizedConstants constants{0.999f, 0.001f, 1.5f, 0.1f, 0.9f, limit};
      all.push_back([=](const KernelTables& t, const CarriedTrits& at, std::int64_t n) {
        return t.updates.carry_normalized(at, constants, v, kCarry, n);
      });
    }
  }
  for (const bool nesterov : {false, true}) {
    for (const bool coupled : {false, true}) {
      const SgdConstants constants{0.9f, 0.1f, nesterov, 0.01f, coupled};
      all.push_back([=](const KernelTables& t, const CarriedTrits& at, std::int64_t n) {
        return t.updates.carry_sgd(at, constants, kCarry, n);
      });
    }
  }
  for (const float decay : {0.0f, 0.01f}) {
    const AdamwConstants constants{0.9f, 0.999f, 0.1f, 0.001f, 1.2f, 30.0f, 1e-8f, decay};
    all.push_back([=](const KernelTables& t, const CarriedTrits& at, std::int64_t n) {
      return t.updates.carry_adamw(at, constants, kCarry, n);
    });
  }
  return all;
}

void check_update(const KernelTables& table, const Update& update, std::int64_t n,
                  std::int64_t offset) {
  for (const bool awkward : {false, true}) {
    for (const bool in_codes : {false, true}) {
      for (const bool by_chance : {false, true}) {
        CAPTURE(table.name);
        CAPTURE(n);
        CAPTURE(awkward);
        CAPTURE(in_codes);
        CAPTURE(by_chance);
        CarryState expected(n, offset, awkward), actual(n, offset, awkward);
        const RandomKey* trit_key = by_chance ? &kKey : nullptr;
        const RandomKey* m_key = by_chance ? &kOtherKey : nullptr;
        const std::int64_t changes =
            update(reference_kernels(), expected.at(in_codes, trit_key, m_key), n);
        CHECK(update(table, actual.at(in_codes, trit_key, m_key), n) == changes);
        REQUIRE(same_bits(expected.trits, actual.trits, (n + 4) / 5));
        REQUIRE(same_bits(expected.m, actual.m, n, true));
        REQUIRE(same_bits(expected.codes, actual.codes, n));
        REQUIRE(same_bits(expected.scales, actual.scales, (n + kGroup - 1) / kGroup));
        REQUIRE(same_bits(expected.v, actual.v, n, true));
        const bool same_sum = std::isnan(expected.v_sum)
                                  ? std::isnan(actual.v_sum)
                                  : std::bit_cast<std::uint64_t>(expected.v_sum) ==
                                        std::bit_cast<std::uint64_t>(actual.v_sum);
        REQUIRE(same_sum);
      }
    }
  }
}

}  // namespace

TEST_CASE("carried errors: blocks move in one pass as in the reference") {
  const std::vector<Update> all = updates();
  for (const KernelTables* table : vector_kernels()) {
    for (std::int64_t n = 0; n <= kBlock; n += n < 130 || n > 310 ? 1 : 7) {
      check_update(*table, all[static_cast<std::size_t>(n) % all.size()], n, n % 8);
    }
    for (const Update& update : all) {
      for (const std::int64_t n : {1, 31, 32, 33, 64, 144, 319, 320}) {
        check_update(*table, update, n, 1);
      }
    }
  }
}

}  // namespace tritgrad::test::test_kernel_carry
