// Updates of FlashOptim's formats in one pass: the bits are those of the kernels for each part, and
// of the reference, whatever the numbers; and what is not ordinary is left as it was.
#include <algorithm>
#include <bit>
#include <functional>

#include "ops/kernels/targets.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_flash_updates {
namespace {

constexpr std::int64_t kGroup = kCompandedGroup;

// The bytes of a run and its gradient.
struct FlashState {
  FlashState(std::int64_t n, std::int64_t offset)
      : grad(n, offset),
        bf16_grad(n, offset),
        value(n, offset),
        correction(n, offset),
        m(n, offset),
        m_scales(n / kGroup, offset),
        v(n, offset),
        v_scales(n / kGroup, offset) {}

  FlashElements at() {
    return {grad.data(), nullptr,         value.data(), correction.data(),
            m.data(),    m_scales.data(), v.data(),     v_scales.data()};
  }

  Guarded<float> grad;
  Guarded<std::uint16_t> bf16_grad, value;
  Guarded<std::int8_t> correction, m;
  Guarded<std::uint16_t> m_scales;
  Guarded<std::uint8_t> v;
  Guarded<std::uint16_t> v_scales;
};

bool same_state(FlashState& a, FlashState& b, std::int64_t n) {
  return same_bits(a.value, b.value, n) && same_bits(a.correction, b.correction, n) &&
         same_bits(a.m, b.m, n) && same_bits(a.m_scales, b.m_scales, n / kGroup) &&
         same_bits(a.v, b.v, n) && same_bits(a.v_scales, b.v_scales, n / kGroup);
}

// Each group has a size of its own, as those of layers have. Gradients are bf16 numbers.
void fill_ordinary(FlashState& state, std::int64_t n, std::uint32_t salt) {
  const KernelTables& reference = reference_kernels();
  std::vector<float> w = numbers(n, salt), m = numbers(n, salt + 1), v = numbers(n, salt + 2);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float size = std::ldexp(1.0f, static_cast<int>((i / kGroup * 7 + salt) % 30) - 25);
    m[at] *= size;
    // As uneven as squares are; some are zero.
    v[at] = i % 97 == 0 ? 0.0f : v[at] * v[at] * v[at] * v[at] * size * size;
  }
  reference.codecs.encode_split8(state.value.data(), state.correction.data(), w.data(), nullptr, n);
  reference.codecs.encode_companded(state.m.data(), state.m_scales.data(), m.data(), nullptr,
                                    nullptr, n);
  reference.codecs.encode_root(state.v.data(), state.v_scales.data(), v.data(), nullptr, nullptr,
                               n);
}

void draw_gradient(FlashState& state, std::int64_t n, std::uint32_t salt) {
  const std::vector<float> g = numbers(n, salt);
  for (std::int64_t i = 0; i < n; ++i) {
    const float size = std::ldexp(1.0f, static_cast<int>(i / kGroup * 7 % 30) - 25);
    state.grad[i] = size * g[static_cast<std::size_t>(i)];
  }
  reference_kernels().codecs.float_to_bf16(state.bf16_grad.data(), state.grad.data(), nullptr, n);
  reference_kernels().codecs.bf16_to_float(state.grad.data(), state.bf16_grad.data(), n);
}

constexpr float kRate = 1e-3f;

// A rule, part by part on the reference, and in one pass.
struct FlashRule {
  const char* name;
  bool has_v, decays;
  std::function<void(float* direction, float* m, float* v, const float* g, const float* w,
                     std::int64_t n)>
      direct;
  std::function<bool(const KernelTables&, const FlashElements&, std::int64_t n)> at_once;
};

FlashRule flash_sgd(bool nesterov, float decay, bool coupled) {
  const KernelTables& reference = reference_kernels();
  return {coupled    ? "sgd, coupled decay"
          : nesterov ? "sgd, nesterov"
                     : "sgd",
          false, decay > 0.0f,
          [=, &reference](float* direction, float* m, float*, const float* g, const float* w,
                          std::int64_t n) {
            std::vector<float> decayed(g, g + n);
            if (coupled) reference.reductions.add_scaled(decayed.data(), w, decay, n);
            reference.updates.sgd(direction, m, decayed.data(), 0.9f, 1.0f, nesterov, n);
            if (!coupled && decay > 0.0f) reference.reductions.add_scaled(direction, w, decay, n);
          },
          [=](const KernelTables& table, const FlashElements& at, std::int64_t n) {
            return table.updates.flash_sgd(at, {0.9f, 1.0f, nesterov, decay, coupled}, kRate, n);
          }};
}

std::vector<FlashRule> flash_rules() {
  const KernelTables& reference = reference_kernels();
  std::vector<FlashRule> rules;
  for (const float decay : {0.0f, 0.01f}) {
    const AdamwConstants adamw{0.9f, 0.999f, 0.1f, 0.001f, 1.2f, 30.0f, 1e-8f, decay};
    rules.push_back({"adamw", true, decay > 0.0f,
                     [=, &reference](float* direction, float* m, float* v, const float* g,
                                     const float* w, std::int64_t n) {
                       reference.updates.adamw(direction, m, v, g, w, adamw, n);
                     },
                     [=](const KernelTables& table, const FlashElements& at, std::int64_t n) {
                       return table.updates.flash_adamw(at, adamw, kRate, n);
                     }});
    const LionConstants lion{0.9f, 0.99f, 0.1f, 0.01f};
    rules.push_back({"lion", false, decay > 0.0f,
                     [=, &reference](float* direction, float* m, float*, const float* g,
                                     const float* w, std::int64_t n) {
                       reference.updates.lion(direction, m, g, lion, n);
                       if (decay > 0.0f) reference.reductions.add_scaled(direction, w, decay, n);
                     },
                     [=](const KernelTables& table, const FlashElements& at, std::int64_t n) {
                       return table.updates.flash_lion(at, lion, decay, kRate, n);
                     }});
    for (const bool nesterov : {false, true}) rules.push_back(flash_sgd(nesterov, decay, false));
  }
  for (const bool nesterov : {false, true}) rules.push_back(flash_sgd(nesterov, 0.01f, true));
  return rules;
}

void part_by_part(const FlashRule& rule, FlashState& state, std::int64_t n) {
  const KernelTables& t = reference_kernels();
  std::vector<float> w(static_cast<std::size_t>(n)), m = w, v = w, direction = w;
  t.codecs.decode_split8(w.data(), state.value.data(), state.correction.data(), n);
  t.codecs.decode_companded(m.data(), state.m.data(), state.m_scales.data(), n);
  t.codecs.decode_root(v.data(), state.v.data(), state.v_scales.data(), n);
  // What rules hand to the kernel of AdamW where nothing decays.
  const float* weight = rule.decays ? w.data() : state.grad.data();
  rule.direct(direction.data(), m.data(), v.data(), state.grad.data(), weight, n);
  t.updates.descend(w.data(), direction.data(), kRate, n);
  t.codecs.encode_split8(state.value.data(), state.correction.data(), w.data(), nullptr, n);
  t.codecs.encode_companded(state.m.data(), state.m_scales.data(), m.data(), nullptr, nullptr, n);
  if (!rule.has_v) return;
  t.codecs.encode_root(state.v.data(), state.v_scales.data(), v.data(), nullptr, nullptr, n);
}

// Calls body(table) for the tables that have such passes, all but the reference, with quotients of
// codes looked up and computed.
void for_each_pass(const std::function<void(const KernelTables&)>& body) {
  const bool before = gathers_quickly();
  for (const KernelTables* table : vector_kernels()) {
    for (const bool looks_up : {false, true}) {
      CAPTURE(std::string(table->name));
      CAPTURE(looks_up);
      gathers_quickly() = looks_up;
      body(*table);
    }
  }
  gathers_quickly() = before;
}

// The ways in which a state is odd, at element i and around it.
struct Oddity {
  const char* name;
  bool refused;  // surely, by a rule with that moment
  bool of_v;
  std::function<void(FlashState&, std::int64_t i)> spoil;
};

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<Oddity> odd_weights() {
  const auto value = [](std::uint16_t bits, std::int8_t correction) {
    return [=](FlashState& s, std::int64_t i) { s.value[i] = bits, s.correction[i] = correction; };
  };
  return {{"0", false, false, [](FlashState& s, std::int64_t i) { s.value[i] = 0; }},
          {"0, a correction inwards", true, false, value(0, -5)},
          {"-0, a correction inwards", true, false, value(0x8000, 5)},
          {"inf", true, false, [](FlashState& s, std::int64_t i) { s.value[i] = 0x7F80; }},
          {"NaN", true, false, [](FlashState& s, std::int64_t i) { s.value[i] = 0x7FC0; }},
          {"-inf, a correction outwards", true, false, value(0xFF80, -127)},
          {"inf, a correction inwards", true, false, value(0x7F80, -127)},
          {"the largest", true, false, value(0x7F7F, 127)},
          {"large ones of both signs", true, false, [](FlashState& s, std::int64_t i) {
             s.value[i / 64 * 64] = 0xFEFF;  // -1.7e38
             s.value[i / 64 * 64 + 16] = s.value[i / 64 * 64 + 8] = 0x7F7F;
             s.correction[i / 64 * 64 + 16] = s.correction[i / 64 * 64 + 8] = 127;
           }}};
}

std::vector<Oddity> odd_gradients() {
  const auto grad = [](float x) { return [=](FlashState& s, std::int64_t i) { s.grad[i] = x; }; };
  return {{"NaN", true, false, grad(NAN)},
          {"inf", true, false, grad(-kInf)},
          {"3e38", false, false, grad(3e38f)}};
}

std::vector<Oddity> odd_moments() {
  const auto m_scale = [](std::uint16_t bits) {
    return [=](FlashState& s, std::int64_t i) { s.m_scales[i / kGroup] = bits; };
  };
  const auto v_scale = [](std::uint16_t bits) {
    return [=](FlashState& s, std::int64_t i) { s.v_scales[i / kGroup] = bits; };
  };
  return {{"all codes of m", false, false,
           [](FlashState& s, std::int64_t) {
             for (std::int64_t k = 0; k < 256; ++k) s.m[k] = static_cast<std::int8_t>(k);
           }},
          {"code of m -128", false, false, [](FlashState& s, std::int64_t i) { s.m[i] = -128; }},
          {"-0, as the weight", false, false,
           [](FlashState& s, std::int64_t i) {
             s.value[i] = 0x8000, s.correction[i] = 0;
             s.m_scales[i / kGroup] = 0;
             s.m[i] = -5;
             s.grad[i] = -0.0f;
           }},
          {"scale of m NaN", true, false, m_scale(0xFF80)},
          {"scale of m inf", true, false, m_scale(0xFF00)},
          {"scale of v NaN", true, true, v_scale(0xFF80)},
          {"scale of v inf", true, true, v_scale(0xFF00)},
          {"scale of m tiny", true, false, [](FlashState& s, std::int64_t i) {
             s.m_scales[i / kGroup] = 0x0200;
             const std::int64_t begin = i / kGroup * kGroup;
             // Coupled decay would add to the gradient.
             for (std::int64_t k = begin; k < begin + kGroup; ++k) {
               s.grad[k] = 0.0f;
               s.value[k] = 0, s.correction[k] = 0;
             }
           }}};
}

void check_odd(const std::vector<Oddity>& oddities) {
  const std::int64_t n = 640;
  for_each_pass([&](const KernelTables& table) {
    for (const FlashRule& rule : flash_rules()) {
      for (const Oddity& odd : oddities) {
        for (const std::int64_t i : {0, 63, 333, 639}) {
          CAPTURE(std::string(rule.name));
          CAPTURE(std::string(odd.name));
          CAPTURE(i);
          if (odd.of_v && !rule.has_v) continue;
          FlashState before(n, 1), expected(n, 1), actual(n, 1);
          for (FlashState* state : {&before, &expected, &actual}) {
            fill_ordinary(*state, n, 70);
            draw_gradient(*state, n, 71);
            odd.spoil(*state, i);
          }
          part_by_part(rule, expected, n);
          const bool done = rule.at_once(table, actual.at(), n);
          if (odd.refused) CHECK(!done);
          CHECK(same_state(done ? expected : before, actual, n));
        }
      }
    }
  });
}

}  // namespace

TEST_CASE("flash updates: one pass has the bits of its parts") {
  for_each_pass([](const KernelTables& table) {
    for (const FlashRule& rule : flash_rules()) {
      for (const std::int64_t n : {64, 128, 192, 320, 512, 576, 768, 1024, 1216, 1280}) {
        for (const std::int64_t offset : {0, 1, 7}) {
          CAPTURE(std::string(rule.name));
          CAPTURE(n);
          FlashState expected(n, offset), actual(n, offset);
          fill_ordinary(expected, n, 50);
          fill_ordinary(actual, n, 50);
          for (std::uint32_t t = 0; t < 4; ++t) {
            draw_gradient(expected, n, 60 + t);
            draw_gradient(actual, n, 60 + t);
            part_by_part(rule, expected, n);
            FlashElements at = actual.at();
            if (t % 2 == 1) {
              at.grad = nullptr;
              at.bf16_grad = actual.bf16_grad.data();
            }
            REQUIRE(rule.at_once(table, at, n));
            REQUIRE(same_state(expected, actual, n));
          }
        }
      }
    }
  });
}

// Codes of v come from roots that were rounded otherwise, so where a number lies next to the middle
// between two codes they must be computed again. Of half a million numbers some hundred do.
TEST_CASE("flash updates: numbers next to the middle between two codes") {
  const std::int64_t n = 1280;
  const FlashRule rule = flash_rules().front();
  for_each_pass([&](const KernelTables& table) {
    FlashState expected(n, 0), actual(n, 0);
    for (std::uint32_t t = 0; t < 400; ++t) {
      if (t % 40 == 0) {
        fill_ordinary(expected, n, t);
        fill_ordinary(actual, n, t);
      }
      draw_gradient(expected, n, 1000 + t);
      draw_gradient(actual, n, 1000 + t);
      part_by_part(rule, expected, n);
      REQUIRE(rule.at_once(table, actual.at(), n));
      REQUIRE(same_state(expected, actual, n));
    }
  });
}

TEST_CASE("flash updates: what takes special care has the same bits or is left as it was") {
  check_odd(odd_weights());
  check_odd(odd_gradients());
  check_odd(odd_moments());
}

TEST_CASE("flash updates: groups of zeros are ordinary, lengths that no run has are refused") {
  const std::int64_t n = 640;
  for_each_pass([&](const KernelTables& table) {
    for (const FlashRule& rule : flash_rules()) {
      CAPTURE(std::string(rule.name));
      FlashState expected(n, 0), actual(n, 0);
      for (FlashState* state : {&expected, &actual}) {
        fill_ordinary(*state, n, 70);
        for (std::int64_t i = 0; i < n; ++i) {
          state->grad[i] = 0.0f;
          state->m[i] = 0;
          state->v[i] = 0;
        }
        for (std::int64_t g = 0; g < n / kGroup; ++g) {
          state->m_scales[g] = state->v_scales[g] = 0;
        }
      }
      part_by_part(rule, expected, n);
      CHECK(rule.at_once(table, actual.at(), n));
      CHECK(same_state(expected, actual, n));
      CHECK(!rule.at_once(table, actual.at(), 96));
      CHECK(!rule.at_once(table, actual.at(), kMostFlashElements + kFlashStep));
    }
  });
}

}  // namespace tritgrad::test::test_flash_updates
