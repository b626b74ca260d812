// Scene 4 of 6. In the empty line below, type `const HOUR_MS = 3_600_000;`
// Offered: the name in place of the number, everywhere below. Next: tour5_plants.py



export function remindAt(meeting: Date): Date {
  return new Date(meeting.getTime() - 3_600_000);
}

export function hoursLeft(meeting: Date, now: Date): number {
  return Math.floor((meeting.getTime() - now.getTime()) / 3_600_000);
}

export const isSoon = (meeting: Date, now: Date): boolean =>
  meeting.getTime() - now.getTime() < 3_600_000;
