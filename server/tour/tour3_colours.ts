// Scene 3 of 6. In the line `export function mix(…`, change the name `mix` to `blend`.
// Offered: its uses in this file and in tour3_theme.ts at once. Next: tour4_reminders.ts

export type Colour = [red: number, green: number, blue: number];

export function mix(one: Colour, other: Colour, share: number): Colour {
  const at = (index: 0 | 1 | 2): number => one[index] + (other[index] - one[index]) * share;
  return [at(0), at(1), at(2)];
}

export function lighten(colour: Colour): Colour {
  return mix(colour, [255, 255, 255], 0.2);
}
