"""An order is placed, and whatever happens meanwhile is one of three: it was taken, it was not, or nobody can tell."""

from dataclasses import dataclass

from windlass.shared.errors import TaskError
from windlass.shared.providers.base import MediaProvider, Order, Ordered, OrderUnknown, PreparingProvider
from windlass.shared.providers.http.network import watching_traffic


@dataclass(frozen=True)
class NotTaken:
    """The provider certainly does not work on it: it said no, or it never heard of it."""

    error: Exception


@dataclass(frozen=True)
class InDoubt:
    """It may work on it."""

    error: Exception


async def prepared(provider: MediaProvider, order: Order) -> Order:
    """The order with all that has to be there before it, for a provider that wants something."""
    return await provider.prepare(order) if isinstance(provider, PreparingProvider) else order


async def place(provider: MediaProvider, order: Order) -> Ordered | NotTaken | InDoubt:
    """Raises nothing but its own cancellation. An adapter may be anybody's, and what it is asked is a stranger's: an
    error that nobody foresaw is a refusal while nobody had been reached, and a doubt from then on."""
    with watching_traffic() as traffic:
        try:
            return await provider.order(order)
        except TaskError as error:
            return NotTaken(error)
        except OrderUnknown as error:
            return InDoubt(error)
        except Exception as error:  # noqa: BLE001 - told to the order's row, and raised as the attempt's end
            return InDoubt(error) if traffic.has_begun else NotTaken(error)
