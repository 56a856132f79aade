/* An AVR in simavr: text goes to its serial port, which simavr prints, and sleeping for ever ends
   it. Included by main.c. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#define IN_ROWS __flash
#define CLOCK "cycles"

/* The stack grows down to the memory that no variable has, which is filled when the program begins.
 */
#define UNTOUCHED 0xA5
extern uint8_t _end[];

__attribute__((naked, used, section(".init3"))) static void fill_stack(void) {
  uint8_t *byte = _end;
  while (byte < (uint8_t *)RAMEND) *byte++ = UNTOUCHED;
}

static uint32_t stack_bytes(void) {
  const uint8_t *byte = _end;
  while (*byte == UNTOUCHED) byte++;
  return (uint32_t)((const uint8_t *)RAMEND + 1 - byte);
}

static void print(const char *text) {
  UCSR0B = _BV(TXEN0);
  while (*text) {
    while (!(UCSR0A & _BV(UDRE0))) {
    }
    UDR0 = (uint8_t)*text++;
  }
}

static void end(void) {
  cli();
  sleep_enable();
  sleep_cpu();
}

/* Timer 1 counts every 256 cycles. */
static void start_clock(void) {
  TCCR1A = 0;
  TCCR1B = _BV(CS12);
  TCNT1 = 0;
}

static uint32_t ticks_of_clock(void) { return TCNT1 * 256ul; }
