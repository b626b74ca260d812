// The second file of scene 3: it imports the function and calls it twice.

import { type Colour, lighten, mix } from "./tour3_colours";

const leaf: Colour = [40, 120, 60];
const sand: Colour = [230, 210, 160];

export const theme = {
  border: lighten(leaf),
  button: mix(leaf, sand, 0.25),
  panel: mix(leaf, sand, 0.75),
};
