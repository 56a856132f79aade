// The functions of a C header, a text for each: what infer() does to a row, in C99.
//
// `$` stands for the name by which all names of the header begin, `@` for its capitals. A text of
// two functions has `#` for their names and `~` for their types. Lines behind `<` are for trits
// several to a byte, those behind `>` for a byte each: `|` of them are the digits of a byte to the
// base that an apostrophe stands for, and a backtick is the byte without its lowest digit (byte *
// 171 >> 9 is byte / 3 for all bytes, without the division that small processors lack).
#pragma once

namespace tritgrad::c_functions {

inline constexpr const char* kQuantize = R"(
/* Rounds x to codes of -127 .. 127; x is about the scale returned times its codes. */
static inline float $_quantize(int8_t *codes, const float *x, int n) {
  const float whole = 12582912.0f; /* 1.5 * 2^23: a sum with it has no bits below one */
  float largest = 0.0f, inverse;
  int i;
  for (i = 0; i < n; i++) {
    float magnitude = x[i] < 0.0f ? -x[i] : x[i];
    if (magnitude > largest) largest = magnitude;
  }
  if (largest < 7.888609052210118e-31f) largest = 0.0f; /* 2^-100 */
  inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
  for (i = 0; i < n; i++) {
    float level = x[i] * inverse;
    if (level > 127.0f) level = 127.0f;
    if (level < -127.0f) level = -127.0f;
    codes[i] = (int8_t)((level + whole) - whole);
  }
  return largest / 127.0f;
}
)";

inline constexpr const char* kTernary = R"(
/* y = W x: sums of whole numbers, times the scales of x and of each group of inputs. */
static inline void $_ternary(float *y, const int8_t *x, float x_scale,
                             const @_FLASH ~ *trits, const @_FLASH float *scales,
                             int inputs, int outputs, int group) {
  int o, i, end;
  for (o = 0; o < outputs; o++) {
    float sum_of_groups = -0.0f;
<    unsigned byte = 0, left = 0, rest;
    for (i = 0; i < inputs;) {
      int32_t sum = 0;
      for (end = inputs - i > group ? i + group : inputs; i < end; i++) {
<        if (left == 0) {
<          byte = *trits++;
<          left = |;
<        }
<        rest = `; /* byte / ' */
<        sum += ((int)(byte - ' * rest) - 1) * x[i];
<        byte = rest;
<        left--;
>        sum += *trits++ * x[i];
      }
      sum_of_groups += x_scale * *scales++ * (float)sum;
    }
    y[o] = sum_of_groups;
  }
}
)";

inline constexpr const char* kTernaryFloat = R"(
/* y = W x, of trits and an x in floats. */
static inline void $_ternary_float(float *y, const float *x, const @_FLASH ~ *trits,
                                   const @_FLASH float *scales,
                                   int inputs, int outputs, int group) {
  int o, i, end;
  for (o = 0; o < outputs; o++) {
    float sum_of_groups = -0.0f;
<    unsigned byte = 0, left = 0, rest;
    for (i = 0; i < inputs;) {
      float sum = 0.0f;
      for (end = inputs - i > group ? i + group : inputs; i < end; i++) {
<        if (left == 0) {
<          byte = *trits++;
<          left = |;
<        }
<        rest = `; /* byte / ' */
<        sum += (float)((int)(byte - ' * rest) - 1) * x[i];
<        byte = rest;
<        left--;
>        sum += (float)*trits++ * x[i];
      }
      sum_of_groups += *scales++ * sum;
    }
    y[o] = sum_of_groups;
  }
}
)";

inline constexpr const char* kDense = R"(
/* y = W x, all of it in floats. */
static inline void $_dense(float *y, const float *x, const @_FLASH float *weights,
                           int inputs, int outputs) {
  int o, i;
  for (o = 0; o < outputs; o++) {
    float sum = 0.0f;
    for (i = 0; i < inputs; i++) sum += *weights++ * x[i];
    y[o] = sum;
  }
}
)";

inline constexpr const char* kBatchNorm = R"(
/* Batch norm by the statistics of training. */
static inline void $_batch_norm(float *y, const float *x, const @_FLASH float *mean,
                                const @_FLASH float *inverse_std,
                                const @_FLASH float *gain, const @_FLASH float *bias,
                                int n) {
  int i;
  for (i = 0; i < n; i++) y[i] = (x[i] - mean[i]) * inverse_std[i] * gain[i] + bias[i];
}
)";

inline constexpr const char* kSumLanes = R"(
/* Adds 32 sums up, the upper half of them to the lower one until one is left. */
static inline double $_sum_lanes(double *lanes) {
  int half, i;
  for (half = 16; half > 0; half /= 2) {
    for (i = 0; i < half; i++) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
)";

inline constexpr const char* kLayerNorm = R"(
/* Layer norm: zero mean and unit variance, then gain and bias. */
static inline void $_layer_norm(float *y, const float *x, const @_FLASH float *gain,
                                const @_FLASH float *bias, int n) {
  double sums[32] = {0}, squares[32] = {0}, mean;
  float center, inverse_std;
  int i;
  for (i = 0; i < n; i++) sums[i % 32] += (double)x[i];
  mean = $_sum_lanes(sums) / n;
  for (i = 0; i < n; i++) squares[i % 32] += ((double)x[i] - mean) * ((double)x[i] - mean);
  center = (float)mean;
  inverse_std = (float)(1.0 / sqrt($_sum_lanes(squares) / n + (double)1e-5f));
  for (i = 0; i < n; i++) y[i] = (x[i] - center) * inverse_std * gain[i] + bias[i];
}
)";

inline constexpr const char* kRmsNorm = R"(
/* RMS norm: a mean square of one, then gain. */
static inline void $_rms_norm(float *y, const float *x, const @_FLASH float *gain, int n) {
  double squares[32] = {0};
  float inverse;
  int i;
  for (i = 0; i < n; i++) squares[i % 32] += (double)x[i] * (double)x[i];
  inverse = (float)(1.0 / sqrt($_sum_lanes(squares) / n + (double)1e-6f));
  for (i = 0; i < n; i++) y[i] = x[i] * inverse * gain[i];
}
)";

inline constexpr const char* kAddBias = R"(
static inline void $_add_bias(float *y, const float *x, const @_FLASH float *bias,
                              int n) {
  int i;
  for (i = 0; i < n; i++) y[i] = x[i] + bias[i];
}
)";

inline constexpr const char* kRelu = R"(
static inline void $_relu(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}
)";

inline constexpr const char* kSquaredRelu = R"(
static inline void $_squared_relu(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i] * x[i];
}
)";

inline constexpr const char* kTanh = R"(
/* e^x of 0 <= x <= 20: x = k ln 2 + r, and a polynomial in r (Cephes). */
static inline float $_exp(float x) {
  const float whole = 12582912.0f; /* what it is added to loses its fraction */
  float k = (x * 1.44269504f + whole) - whole;
  float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f, power = 1.0f;
  int i;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  for (i = 0; i < (int)k; i++) power *= 2.0f;
  return (p * (r * r) + r + 1.0f) * power;
}

/* A polynomial near 0, elsewhere 1 - 2 / (e^2x + 1). */
static inline void $_tanh(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) {
    float m = x[i] < 0.0f ? -x[i] : x[i], y;
    if (m > 10.0f) m = 10.0f; /* tanh is 1 from 9.02 on */
    if (m < 0.625f) {
      float z = m * m, p = -5.70498872745e-3f;
      p = p * z + 2.06390887954e-2f;
      p = p * z - 5.37397155531e-2f;
      p = p * z + 1.33314422036e-1f;
      p = p * z - 3.33332819422e-1f;
      y = p * z * m + m;
    } else {
      y = 1.0f - 2.0f / ($_exp(2.0f * m) + 1.0f);
    }
    x[i] = x[i] < 0.0f ? -y : y;
  }
}
)";

inline constexpr const char* kBlock = R"(
/* What a residual block reads is kept, and added at its end. */
static inline void $_keep(float *kept, const float *x, int n) {
  int i;
  for (i = 0; i < n; i++) kept[i] = x[i];
}

static inline void $_add(float *x, const float *kept, int n) {
  int i;
  for (i = 0; i < n; i++) x[i] += kept[i];
}
)";

inline constexpr const char* kWindow = R"(
/* Copies the 3 x 3 pixels around pixel number `at`; what is outside the image is 0. */
static inline void $_#(~ *window, const ~ *x, int at, int height, int width, int channels) {
  int row = at / width, column = at % width, i, j, c;
  for (i = row - 1; i <= row + 1; i++) {
    for (j = column - 1; j <= column + 1; j++) {
      int inside = i >= 0 && i < height && j >= 0 && j < width;
      for (c = 0; c < channels; c++) *window++ = inside ? x[(i * width + j) * channels + c] : 0;
    }
  }
}
)";

inline constexpr const char* kMaxPool = R"(
/* The largest of 2 x 2 pixels, channel by channel, in the place of x. */
static inline void $_max_pool(float *x, int height, int width, int channels) {
  float *out = x;
  int i, j, c;
  for (i = 0; i + 1 < height; i += 2) {
    for (j = 0; j + 1 < width; j += 2) {
      for (c = 0; c < channels; c++) {
        const float *a = x + (i * width + j) * channels + c, *b = a + width * channels;
        float above = a[0] > a[channels] ? a[0] : a[channels];
        float below = b[0] > b[channels] ? b[0] : b[channels];
        *out++ = above > below ? above : below;
      }
    }
  }
}
)";

inline constexpr const char* kAveragePool = R"(
/* The mean over all pixels of each channel, in the place of x. */
static inline void $_average_pool(float *x, int pixels, int channels) {
  int i, c;
  for (c = 0; c < channels; c++) {
    double sum = 0.0;
    for (i = 0; i < pixels; i++) sum += (double)x[i * channels + c];
    x[c] = (float)(sum / pixels);
  }
}
)";

}  // namespace tritgrad::c_functions
