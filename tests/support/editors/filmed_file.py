"""The file that is open in the films of the editors."""

FILE = "prices.py"
TEXT = '''"""What an order costs."""

from decimal import Decimal

VAT = Decimal("0.19")


def net(order):
    return sum(line.price for line in order.lines)


def gross(order):
    return net(order) * (1 + VAT)


def report(orders):
    for order in orders:
        print(order.id, net(order))
'''
