"""The files that are open in the films of the editors."""

FILE = "prices.py"
TEXT = '''"""What an order costs."""

from rates import fetch_rate


def net(order):
    return sum(line.price for line in order.lines)


def rate(country, cached):
    return fetch_rate(country)


def gross(order):
    vat = rate(order.country, True)
    return net(order) * (1 + vat)
'''
#: Uses the first.
OTHER_FILE = "invoice.py"
OTHER_TEXT = '''"""Invoices."""

from prices import gross, net, rate


def invoice(order):
    vat = rate(order.country, False)
    print(order.id, net(order), vat)
    return gross(order)
'''
