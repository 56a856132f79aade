/* A program in C that trains a ternary network, saves it, predicts with it, and writes it as C
 * (that of docs/C.md). */
#include <stdio.h>
#include <stdlib.h>

#include "tritgrad.h"

static int report(const tg_progress *progress, void *context) {
  (void)context;
  if (progress->step == progress->total_steps) printf("%d steps\n", (int)progress->step);
  return 0; /* other numbers end the run */
}

static int failed(void) {
  fprintf(stderr, "%s\n", tg_error());
  return 1;
}

int main(void) {
  /* Two numbers a row; the class says whether their product is above zero. */
  enum { ROWS = 1000, FEATURES = 2 };
  static float x[ROWS][FEATURES];
  static int64_t labels[ROWS], classes[ROWS];
  int i, right = 0;
  for (i = 0; i < ROWS; i++) {
    x[i][0] = (float)rand() / (float)RAND_MAX - 0.5f;
    x[i][1] = (float)rand() / (float)RAND_MAX - 0.5f;
    labels[i] = x[i][0] * x[i][1] > 0;
  }

  tg_data *data = tg_data_from_arrays(x, TG_FLOAT32, ROWS, FEATURES, labels, TG_INT64,
                                      "{\"name\": \"products\", \"borrow\": true}");
  tg_run *run =
      tg_run_new(data, "{\"model\": \"mlp:32\", \"recipe\": \"latent8\", \"epochs\": 30}");
  if (run == NULL || tg_run_observe(run, report, NULL) != TG_OK || tg_run_all(run) != TG_OK ||
      tg_run_save(run, "product.safetensors") != TG_OK) {
    return failed();
  }

  /* The model as the run has it; tg_model_open("product.safetensors") is the same one. */
  tg_model *model = tg_run_model(run);
  if (tg_model_predict(model, x, TG_FLOAT32, ROWS, FEATURES, classes, NULL, NULL) != TG_OK)
    return failed();
  for (i = 0; i < ROWS; i++) right += classes[i] == labels[i];
  printf("%d of %d rows right\n", right, ROWS);

  size_t size = 0;
  const void *bytes = tg_model_bytes(model, &size);
  tg_model *copy = tg_model_from_bytes(bytes, size);
  if (copy == NULL) return failed();
  printf("%d bytes: %s\n", (int)size, tg_model_describe(copy));

  /* An export is compared with the model before it is written: on rows that the run held back, or,
   * of a model that was opened, on those that it is given. */
  const char *exported = tg_model_export(model, "product.h", "{\"trits\": \"2bit\"}");
  if (exported == NULL ||
      tg_model_check_rows(copy, x, TG_FLOAT32, ROWS, FEATURES, labels, NULL) != TG_OK ||
      tg_model_export(copy, "product.npz", NULL) == NULL) {
    return failed();
  }
  printf("product.h: %s\n", exported);

  const char *compared = tg_compare(
      data,
      "{\"model\": \"mlp:8\", \"recipes\": [\"master\", \"votes\"], \"seeds\": 1, \"epochs\": 2}",
      NULL, NULL);
  if (compared == NULL || tg_model_inspect(model, "{\"export\": \"onnx\"}") == NULL ||
      tg_recipes() == NULL) {
    return failed();
  }

  tg_model_close(copy);
  tg_model_close(model);
  tg_run_close(run);
  tg_data_close(data);
  return right > 900 ? 0 : 1;
}
