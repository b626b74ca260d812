# Scene 5 of 6. Below the line `room: str`, add a line of the same indentation: `year: int`
# Offered: the new field at all places that list the others, at once. Next: tour6_next_line.py

from dataclasses import dataclass


@dataclass
class Plant:
    name: str
    height: float
    room: str

    def as_row(self) -> dict[str, object]:
        return {"name": self.name, "height": self.height, "room": self.room}

    def __str__(self) -> str:
        return f"name={self.name}, height={self.height}, room={self.room}"


def cutting(plant: Plant) -> Plant:
    return Plant(name=plant.name, height=plant.height, room=plant.room)
