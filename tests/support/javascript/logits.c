/* Prints the bits of the logits of rows of numbers from standard input, the number of the class, and its name.
   MODEL is a header of 'tritgrad export', NAME and PREFIX begin the names in it, FEATURE is the type of its features. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include MODEL

#define JOIN(a, b) a##b
#define OF(a, b) JOIN(a, b)

static OF(NAME, _workspace) workspace;

int main(void) {
  FEATURE features[OF(PREFIX, _INPUTS)];
  float logits[OF(PREFIX, _CLASSES)];
  double number;
  int i = 0, number_of_class;
  while (scanf("%lf%*[,\n]", &number) == 1) {
    features[i++] = (FEATURE)number;
    if (i < OF(PREFIX, _INPUTS)) continue;
    OF(NAME, _logits)(features, logits, &workspace);
    for (i = 0; i < OF(PREFIX, _CLASSES); i++) {
      uint32_t bits;
      memcpy(&bits, &logits[i], sizeof bits);
      printf("%08" PRIx32 " ", bits);
    }
    number_of_class = OF(NAME, _predict)(features, &workspace);
    printf("%d %s\n", number_of_class, OF(NAME, _class_name)(number_of_class));
    i = 0;
  }
  return i != 0;
}
