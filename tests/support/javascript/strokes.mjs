// Digits as people draw them: strokes of places [x, y] of 0 to 1.

/** An arc around a centre, from one angle to another in degrees, clockwise from the right. */
const arc = (x, y, width, height, from, to) => Array.from({ length: 25 }, (_, i) => {
  const angle = (from + (to - from) * i / 24) * Math.PI / 180;
  return [x + width * Math.cos(angle), y + height * Math.sin(angle)];
});

export const digits = {
  0: [arc(0.5, 0.5, 0.2, 0.3, -90, 270)],
  1: [[[0.5, 0.2], [0.5, 0.5], [0.5, 0.8]]],
  2: [[...arc(0.48, 0.34, 0.2, 0.16, -170, 30), [0.3, 0.8], [0.72, 0.8]]],
  3: [[...arc(0.45, 0.34, 0.2, 0.15, -150, 80), ...arc(0.45, 0.65, 0.23, 0.17, -80, 150)]],
  4: [[[0.4, 0.2], [0.3, 0.55], [0.7, 0.55]], [[0.62, 0.25], [0.6, 0.8]]],
  5: [[[0.7, 0.2], [0.38, 0.2], [0.36, 0.47], ...arc(0.46, 0.63, 0.2, 0.18, -100, 140)]],
  7: [[[0.28, 0.22], [0.72, 0.22], [0.45, 0.8]]],
  9: [[...arc(0.48, 0.37, 0.17, 0.17, 0, -360), [0.64, 0.42], [0.6, 0.8]]],
};
