/* mlp:32 on digits
   A network in plain C99. Include this file in one source file, and:
     static digits_workspace workspace;
     int number = digits_predict(features, &workspace);
   features: DIGITS_INPUTS numbers as the data have them; they are standardised here. Nothing is
   written but the workspace. The numbers are those of the program that wrote this file where
   floats are IEEE 754 and the compiler does not fuse products and sums (-ffp-contract=off). */
#ifndef DIGITS_H
#define DIGITS_H

#include <stdint.h>

enum { DIGITS_INPUTS = 64, DIGITS_CLASSES = 10 };

typedef struct {
  float x[64], y[64];
  int8_t codes[64];
} digits_workspace;
#define DIGITS_WORKSPACE_BYTES sizeof(digits_workspace)

/* layers.0: 64 inputs, 32 outputs; five trits a byte */
static const uint8_t digits_layers_0_trits[416] = {
    226, 53,  179, 87,  0,   40,  234, 238, 92,  94,  111, 223, 84,  197, 169, 158, 15,  191, 54,
    160, 192, 67,  181, 236, 127, 161, 88,  10,  122, 226, 53,  230, 160, 62,  238, 145, 81,  169,
    81,  129, 214, 204, 149, 201, 14,  169, 181, 47,  103, 140, 169, 88,  226, 169, 77,  11,  25,
    189, 5,   94,  37,  201, 120, 52,  126, 162, 194, 81,  80,  234, 232, 102, 8,   127, 170, 223,
    198, 95,  157, 197, 137, 72,  156, 78,  24,  111, 8,   107, 19,  130, 110, 110, 223, 220, 9,
    119, 73,  129, 46,  166, 107, 234, 158, 122, 111, 126, 9,   194, 9,   51,  214, 241, 233, 130,
    25,  167, 105, 41,  94,  147, 212, 215, 144, 24,  86,  153, 54,  77,  101, 134, 193, 60,  13,
    124, 190, 54,  96,  175, 76,  225, 242, 102, 158, 130, 85,  118, 236, 115, 158, 1,   82,  110,
    45,  104, 188, 104, 118, 147, 97,  157, 114, 215, 145, 145, 4,   211, 9,   135, 136, 4,   16,
    15,  214, 164, 164, 15,  4,   222, 219, 151, 81,  133, 232, 85,  94,  64,  225, 86,  114, 135,
    49,  64,  241, 236, 124, 138, 134, 94,  102, 121, 122, 152, 68,  171, 86,  93,  176, 135, 222,
    84,  36,  142, 172, 117, 207, 65,  79,  88,  208, 207, 124, 114, 63,  4,   236, 97,  3,   203,
    120, 160, 158, 29,  90,  92,  136, 124, 147, 237, 188, 210, 92,  173, 100, 112, 109, 93,  139,
    119, 129, 172, 144, 75,  202, 70,  134, 160, 101, 85,  61,  85,  123, 186, 151, 126, 205, 213,
    119, 118, 32,  81,  3,   11,  103, 124, 104, 113, 238, 54,  160, 108, 5,   127, 19,  56,  90,
    94,  131, 156, 161, 0,   232, 2,   200, 144, 98,  206, 119, 3,   156, 113, 41,  211, 15,  17,
    145, 31,  77,  2,   143, 172, 116, 118, 110, 77,  54,  98,  179, 135, 109, 206, 227, 77,  9,
    148, 87,  178, 106, 23,  35,  129, 108, 110, 121, 140, 210, 206, 144, 99,  128, 242, 241, 42,
    229, 82,  157, 153, 124, 34,  89,  138, 81,  40,  37,  39,  204, 227, 97,  212, 75,  229, 21,
    79,  91,  151, 162, 100, 102, 88,  164, 143, 77,  186, 115, 188, 92,  159, 92,  46,  75,  155,
    138, 233, 162, 151, 91,  139, 183, 203, 132, 134, 197, 201, 143, 15,  106, 73,  19,  86,  185,
    86,  137, 162, 95,  157, 48,  121, 25,  52,  2,   71,  114, 79,  64,  161, 42,  90,
};
static const float digits_layers_0_scales[32] = {
    0.24023438f, 0.1595459f,  0.2277832f,  0.18566895f, 0.21008301f, 0.19812012f, 0.22363281f,
    0.21813965f, 0.20947266f, 0.22839355f, 0.2076416f,  0.24133301f, 0.25830078f, 0.16210938f,
    0.22753906f, 0.1529541f,  0.12023926f, 0.2199707f,  0.21325684f, 0.1998291f,  0.18310547f,
    0.23266602f, 0.16467285f, 0.22155762f, 0.21618652f, 0.21191406f, 0.17041016f, 0.19946289f,
    0.18896484f, 0.18688965f, 0.2331543f,  0.19042969f,
};
static const float digits_layers_0_mean[32] = {
    0.89002347f, -0.52837497f, 0.6076535f,    -0.24109966f,  0.05653667f,  1.0806996f,
    -0.5158148f, -0.3160794f,  0.021656778f,  0.29265755f,   -0.19072682f, 0.84503937f,
    -0.1342552f, -0.09478937f, -0.024353594f, -0.043520246f, 0.75458926f,  0.09969097f,
    0.92516446f, -0.2884832f,  0.055330426f,  2.1957917f,    -1.3344586f,  -0.07814623f,
    -0.7155925f, -0.6957572f,  -0.951704f,    0.29380822f,   -0.3108358f,  -0.5912111f,
    1.8127756f,  -1.1357926f,
};
static const float digits_layers_0_inverse_std[32] = {
    0.88999313f, 1.0412377f,  0.6690258f, 1.0007086f,  0.7234162f,  1.026757f,  0.59479576f,
    0.7737338f,  0.64222246f, 0.6629915f, 0.7437119f,  0.74732393f, 0.6735151f, 0.954293f,
    0.6817029f,  1.428275f,   1.6981716f, 0.6766926f,  0.98072517f, 1.1161236f, 1.2201144f,
    0.8551007f,  1.061266f,   0.6955378f, 0.67018956f, 1.0161233f,  0.9494446f, 0.88246626f,
    1.1455411f,  1.0280707f,  0.7733658f, 0.98208976f,
};
static const float digits_layers_0_gain[32] = {
    1.7353472f,  1.1020203f, 1.6894256f, 1.3523995f, 1.5072507f, 1.4859362f, 1.6811225f, 1.6170334f,
    1.7133155f,  1.6152902f, 1.5118108f, 1.7754095f, 1.8608621f, 1.2475873f, 1.7272551f, 1.0103365f,
    0.82451177f, 1.6565017f, 1.5494986f, 1.3451958f, 1.2697747f, 1.6727306f, 1.1502241f, 1.5942227f,
    1.5475894f,  1.4434611f, 1.2510878f, 1.48213f,   1.3582653f, 1.2868623f, 1.7049427f, 1.408794f,
};
static const float digits_layers_0_bias[32] = {
    0.5649307f,  0.013876959f, 0.42613757f, -0.07533595f, 0.34835488f, 0.28369084f, 0.5849227f,
    0.25247428f, 0.38664007f,  0.45500514f, 0.44288108f,  0.70089567f, 0.69014275f, 0.22008413f,
    0.5130055f,  -0.06312974f, -0.2792371f, 0.48994005f,  0.601716f,   0.26104534f, 0.10958682f,
    0.56490684f, 0.040967036f, 0.34771708f, 0.5148738f,   0.21886803f, 0.11377246f, 0.26145035f,
    0.38708284f, 0.21475056f,  0.66153306f, 0.3433552f,
};

/* head: 32 inputs, 10 outputs; five trits a byte */
static const uint8_t digits_head_trits[70] = {
    141, 6,   181, 79,  18, 105, 123, 18,  234, 62,  57, 202, 126, 117, 195, 163, 224, 3,
    91,  173, 124, 170, 24, 31,  13,  234, 57,  122, 18, 58,  46,  212, 172, 73,  123, 32,
    44,  186, 4,   6,   35, 117, 137, 56,  218, 106, 3,  18,  117, 236, 27,  27,  224, 200,
    35,  123, 45,  167, 34, 234, 178, 0,   122, 198, 15, 24,  61,  65,  189, 118,
};
static const float digits_head_scales[10] = {
    0.328125f,   0.34301758f, 0.3256836f,  0.36401367f, 0.3383789f,
    0.36889648f, 0.34179688f, 0.32006836f, 0.32666016f, 0.32348633f,
};
static const float digits_head_bias[10] = {
    -0.1870523f,  -0.11513337f, -0.028932143f, 0.17286366f, -0.085459456f,
    0.086634405f, -0.0924972f,  -0.09909775f,  0.11848283f, 0.29195946f,
};

/* inputs: mean and 1 / standard deviation of the training rows */
static const float digits_mean[1] = {
    4.8871803f,
};
static const float digits_inverse_std[1] = {
    0.16614157f,
};

/* Rounds x to codes of -127 .. 127; x is about the scale returned times its codes. */
static inline float digits_quantize(int8_t *codes, const float *x, int n) {
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

/* y = W x: sums of whole numbers, times the scales of x and of each group of inputs. */
static inline void digits_ternary(float *y, const int8_t *x, float x_scale, const uint8_t *trits,
                                  const float *scales, int inputs, int outputs, int group) {
  unsigned byte = 0;
  int o, i, end;
  for (o = 0; o < outputs; o++) {
    float sum_of_groups = -0.0f;
    for (i = 0; i < inputs;) {
      int32_t sum = 0;
      for (end = inputs - i > group ? i + group : inputs; i < end; i++) {
        if (i % 5 == 0) byte = *trits++;
        sum += ((int)(byte % 3) - 1) * x[i];
        byte /= 3;
      }
      sum_of_groups += x_scale * *scales++ * (float)sum;
    }
    y[o] = sum_of_groups;
  }
}

/* Batch norm by the statistics of training. */
static inline void digits_batch_norm(float *y, const float *x, const float *mean,
                                     const float *inverse_std, const float *gain, const float *bias,
                                     int n) {
  int i;
  for (i = 0; i < n; i++) y[i] = (x[i] - mean[i]) * inverse_std[i] * gain[i] + bias[i];
}

static inline void digits_add_bias(float *y, const float *x, const float *bias, int n) {
  int i;
  for (i = 0; i < n; i++) y[i] = x[i] + bias[i];
}

static inline void digits_relu(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

static inline void digits_standardize(float *x, const float features[DIGITS_INPUTS]) {
  const double most = 3.4028234663852886e38; /* the largest float */
  int i;
  for (i = 0; i < DIGITS_INPUTS; i++) {
    double z = ((double)features[i] - (double)digits_mean[0]) * (double)digits_inverse_std[0];
    x[i] = (float)(z > most ? most : z < -most ? -most : z);
  }
}

/* Writes the logits, one number for each class. */
static inline void digits_logits(const float features[DIGITS_INPUTS], float logits[DIGITS_CLASSES],
                                 digits_workspace *w) {
  float scale;
  digits_standardize(w->x, features);

  /* layers.0 */
  scale = digits_quantize(w->codes, w->x, 64);
  digits_ternary(w->y, w->codes, scale, digits_layers_0_trits, digits_layers_0_scales, 64, 32, 64);
  digits_batch_norm(w->x, w->y, digits_layers_0_mean, digits_layers_0_inverse_std,
                    digits_layers_0_gain, digits_layers_0_bias, 32);
  digits_relu(w->x, 32);

  /* head */
  scale = digits_quantize(w->codes, w->x, 32);
  digits_ternary(w->y, w->codes, scale, digits_head_trits, digits_head_scales, 32, 10, 32);
  digits_add_bias(logits, w->y, digits_head_bias, 10);
}

/* Returns the number of the class, the one with the largest logit. */
static inline int digits_predict(const float features[DIGITS_INPUTS], digits_workspace *w) {
  int best = 0, i;
  digits_logits(features, w->x, w); /* which reads w->x no more when it writes the logits */
  for (i = 1; i < DIGITS_CLASSES; i++) {
    if (w->x[i] > w->x[best]) best = i;
  }
  return best;
}

static inline const char *digits_class_name(int number) {
  static const char *const names[DIGITS_CLASSES] = {
      "0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
  };
  return names[number];
}

#endif
