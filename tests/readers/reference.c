/* What an exported header (tritgrad export --to m.h) makes of rows of numbers, as the reference of other exports of
   the same model. Reads rows of MODEL_INPUTS numbers as text from standard input, and writes for each row floats:
   the standardised inputs, the logits, and `slack`.

   slack is by how much a logit may differ because a code of the last layer is another one. A reader that adds floats
   in another order, or has a tanh of its own, feeds the last layer numbers that are off by up to
   TOLERANCE = 4 (TERMS + 16) 2^-24 of the largest (tolerance() in models/export/inference_network.h; TERMS are the
   inputs of all layers). The layer divides by the largest, off by as much, and multiplies by 127 before it rounds, so
   that a code can become a neighbour only within 2 * 127 * TOLERANCE of a tie, and then changes a logit by
   the layer's scale of inputs times a scale of weights, at most. LAST_INPUTS are the inputs of the last layer; 0: it
   multiplies in floats, or all before it is exact, and slack is 0.

   A number that is missing (nan) is its mean here, whose standardised value is 0. With ENCODES, a row is the cells of
   a table instead, of which the header makes features as in training.

   MODEL is the file, NAME and PREFIX what its names begin with. */
#include <math.h>
#include <stdio.h>

#include MODEL

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_MODEL(name) JOIN(NAME, name)
#define CONSTANT(name) JOIN(PREFIX, name)

static OF_MODEL(_workspace) workspace;

#if LAST_INPUTS
static float slack_of_codes(const float *x) {
  const double tolerance = 4.0 * (TERMS + 16) / 16777216.0;
  double largest = 0.0, scale = 0.0;
  int close = 0, i;
  for (i = 0; i < LAST_INPUTS; i++) largest = fmax(largest, fabs((double)x[i]));
  for (i = 0; i < (int)(sizeof OF_MODEL(_head_scales) / sizeof(float)); i++) {
    scale = fmax(scale, fabs((double)OF_MODEL(_head_scales)[i]));
  }
  for (i = 0; i < LAST_INPUTS && largest > 0.0; i++) {
    double level = fabs((double)x[i]) / largest * 127.0;
    close += fabs(level - floor(level) - 0.5) <= 2.0 * 127.0 * tolerance;
  }
  return (float)(close * (largest / 127.0) * scale);
}
#endif

#ifdef ENCODES
enum { NUMBERS = CONSTANT(_CELLS) };
#else
enum { NUMBERS = CONSTANT(_INPUTS) };
#endif

int main(void) {
  for (;;) {
    NUMBER row[NUMBERS], features[CONSTANT(_INPUTS)];
    float standardized[CONSTANT(_INPUTS)], logits[CONSTANT(_CLASSES)], slack = 0.0f;
    int i;
    for (i = 0; i < NUMBERS; i++) {
      double x;
      if (scanf("%lf%*[,]", &x) < 1) return i == 0 && feof(stdin) ? 0 : 1;
      row[i] = (NUMBER)x;
    }
#ifdef ENCODES
    OF_MODEL(_encode)(row, features);
#else
    for (i = 0; i < NUMBERS; i++) features[i] = isnan(row[i]) ? OF_MODEL(_mean)[i] : row[i];
#endif
    OF_MODEL(_standardize)(standardized, features);
    OF_MODEL(_logits)(features, logits, &workspace);
#if LAST_INPUTS
    slack = slack_of_codes(workspace.x); /* what the last layer read */
#endif
    fwrite(standardized, sizeof standardized, 1, stdout);
    fwrite(logits, sizeof logits, 1, stdout);
    fwrite(&slack, sizeof slack, 1, stdout);
  }
}
