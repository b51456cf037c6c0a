"""Why the older ways fail: each attack on what it breaks, and on Hubbub at ε = 1."""

from fractions import Fraction

from hubbub.cli.lab.tours.step import StepOutcome, TourStep, bars, of_findings

ONE = Fraction(1)


def _suppression() -> StepOutcome:
    from hubbub.attack.suppression import exact_ranges, hcup, one_line_at_a_time, suppression

    table, found = hcup(), suppression(hcup())
    pencil, exact = one_line_at_a_time(table), exact_ranges(table)
    rows = tuple(
        (f"{table.rows[i]} / {table.columns[j]}", _range(pencil[i, j]), _range(exact[i, j])) for i, j in table.hidden
    )
    return StepOutcome(
        says=found.verdict, columns=("hidden count", "one line at a time", "all lines together"), rows=rows,
        draw=found.draw,
    )  # fmt: skip


def _range(held: tuple[int, int] | None) -> str:
    if held is None:
        return "not known"
    return str(held[0]) if held[0] == held[1] else f"{held[0]} to {held[1]}"


def _differencing() -> StepOutcome:
    from hubbub.attack.gateway.exclusion import count_exactly, district, not_named
    from hubbub.cli.lab.targets import pupils

    table = district(people=200)
    exact = not_named(table, count_exactly(table), victims=40, target="exact counts")
    with pupils(table, epsilon=ONE, questions=41) as count:
        ours = not_named(table, count, victims=40, target="Hubbub")
    return of_findings(("exact counts", exact), ("Hubbub, ε = 1 in all", ours))


def _reconstruction() -> StepOutcome:
    from hubbub.attack.made_up import MadeUp
    from hubbub.attack.reconstruction import exact, noised, reconstruction, rounded
    from hubbub.cli.lab.targets import subsets

    secret = MadeUp(0, "tour").bits(300)
    asked = {
        "exact answers": exact(secret),
        "answers rounded to 5": rounded(secret, to=5),
        "noise up to 3": noised(secret, size=3),
        "Hubbub, ε = 1 in all": subsets(secret, epsilon=ONE),
    }
    found = {name: reconstruction(secret, told, target=name, count=1200) for name, told in asked.items()}
    seen = of_findings(*found.items(), says="Overly accurate answers to too many questions leave no secret.")
    shares = [one.numbers["found"] for one in found.values()]
    return StepOutcome(
        says=seen.says, columns=seen.columns, rows=seen.rows, draw=bars([*found], shares, "share of 300 bits found")
    )


def _linkage() -> StepOutcome:
    from hubbub.attack.linkage import unique_people
    from hubbub.attack.made_up import MadeUp

    source, people = MadeUp(0, "voters"), 2000
    table = {
        "zip": [f"130{place:02d}" for place in source.below(people, 20)],
        "sex": ["female" if bit else "male" for bit in source.bits(people)],
        "born": [str(1930 + place) for place in source.below(people, 75)],
    }
    found = unique_people(table, quasi=["zip", "sex", "born"])
    return StepOutcome(says=found.verdict, columns=found.columns, rows=found.rows, draw=found.draw)


def _composition() -> StepOutcome:
    from hubbub.attack.composition import HOSPITALS, LECTURE, composition, hospitals, lecture

    first = composition(*lecture(), on=LECTURE, sensitive="condition", person={"zip": "13012", "age": "28"})
    second = composition(*hospitals(), on=HOSPITALS, sensitive="diagnosis", person={"age": "20", "gender": "Male"})
    return of_findings(
        ("a 4-anonymous and a 6-anonymous table", first), ("two hospitals", second),
        says="Anonymity does not compose: what each of two tables hides, both together tell.",
    )  # fmt: skip


def _green_hair() -> StepOutcome:
    from hubbub.attack.green_hair import green_hair, perceptron, town
    from hubbub.cli.lab.targets import private_perceptron

    rows, signs = town(people=300)
    private = private_perceptron(epsilon=ONE, low=[-1, -1, -1, 0], high=[1, 1, 1, 1])
    plain = green_hair(perceptron, rows, signs, target="the perceptron", repeats=40)
    ours = green_hair(private, rows, signs, target="Hubbub's", repeats=40)
    seen = of_findings(("the perceptron", plain), ("Hubbub's perceptron, ε = 1", ours))
    return StepOutcome(says=seen.says, columns=seen.columns, rows=seen.rows, draw=ours.draw)


def _tracing() -> StepOutcome:
    from hubbub.attack.membership import population, tracing
    from hubbub.cli.lab.targets import means

    inside, outside, shares = population(people=100, strangers=1000, attributes=2000)
    exact = tracing(inside, outside, inside.mean(axis=0), shares=shares, target="exact means")
    ours = tracing(inside, outside, means(inside, epsilon=ONE), shares=shares, target="Hubbub's means")
    return of_findings(("2,000 exact means of 100 people", exact), ("the same from Hubbub, ε = 1", ours))


def _floats() -> StepOutcome:
    from functools import partial

    from hubbub.attack.made_up import MadeUp
    from hubbub.attack.precision import floating_point, possible, whole
    from hubbub.cli.lab.targets import counts

    doubles = [(truth + MadeUp(0, f"tour {truth}").laplace(300, 1.0)).tolist() for truth in (0, 1)]
    ours = [counts(truth, epsilon=ONE, times=300) for truth in (0, 1)]
    naive = floating_point(doubles, truths=(0, 1), reaches=partial(possible, scale=1.0), target="doubles")
    exact = floating_point(ours, truths=(0, 1), reaches=whole, target="Hubbub")
    return of_findings(("Laplace noise in doubles", naive), ("Hubbub's whole numbers", exact))


def _errors() -> StepOutcome:
    from hubbub.attack.gateway.naive_gateway import NaiveGateway
    from hubbub.attack.gateway.oracles import FAILING, error_oracle, suspects
    from hubbub.cli.lab.targets import clinic

    who = suspects(people=40)
    with NaiveGateway(who.truth) as gateway:
        naive = error_oracle(gateway.ask, who, target="a naive gateway")
    with clinic(who.truth, epsilon=ONE, questions=len(FAILING) * 40) as ask:
        ours = error_oracle(ask, who, target="Hubbub")
    return of_findings(("a gateway that only adds noise", naive), ("Hubbub", ours))


def _deterministic() -> StepOutcome:
    from hubbub import audit

    people, more = list(range(20)), list(range(21))
    exact = audit.lower_bound(len, people, more)
    sampled = audit.lower_bound(lambda rows: 20 in rows and _one_in_four(), people, more)
    return StepOutcome(
        says="Neither an exact count nor a sample of the people is private: an audit finds the counterexample.",
        columns=("target", "ε is at least", "called private at ε = 1"),
        rows=tuple(
            (name, f"{one.epsilon:.3g}", "refuted" if one.accuses(1.0) else "not refuted")
            for name, one in (("an exact count", exact), ("a person of a 25% sample, shown", sampled))
        ),
    )


def _one_in_four() -> bool:
    import secrets

    return secrets.randbelow(4) == 0


STEPS = (
    TourStep(
        name="suppression", title="Small counts left out, and worked out again", lecture="000",
        about="A hospital register hides counts that are small. Rows and columns still add up, so integer programming "
        "holds every hidden count within exact bounds; some are pinned to one number.",
        run=_suppression,
    ),
    TourStep(
        name="differencing", title="Everybody, and everybody not named Frank", lecture="000, 002, 004",
        about="Two questions about large crowds differ by one person, and so do their answers. With noise for each "
        "question and a budget for all, the difference is noise.",
        run=_differencing,
    ),
    TourStep(
        name="reconstruction", title="A secret column, rebuilt from answers about subsets", lecture="003, 004",
        about="Dinur and Nissim: noise that is small beside the square root of the number of people does not help "
        "where questions are many. Through the gate, all of them together cost ε = 1.",
        run=_reconstruction,
    ),
    TourStep(
        name="linkage", title="Who is alone with a few ordinary facts", lecture="002, 004",
        about="A table without names still has names in it: combinations of facts that nobody else has.",
        run=_linkage,
    ),
    TourStep(
        name="anonymity", title="Two anonymised tables, held side by side", lecture="003, 004",
        about="k-anonymity and l-diversity hide a person in a group of one table. Whoever is in two tables is in the "
        "intersection of two groups.",
        run=_composition,
    ),
    TourStep(
        name="green-hair", title="The perceptron and the one person with green hair", lecture="002",
        about="Nobody else moves the weight of a feature that one person has. Its sign is a diagnosis.",
        run=_green_hair,
    ),
    TourStep(
        name="tracing", title="Was this person among them?", lecture="000, 004",
        about="Exact means of many attributes lean towards those who are in them.",
        run=_tracing,
    ),
    TourStep(
        name="low-bits", title="Noise made of doubles", lecture="000–004",
        about="The Laplace mechanism is private on real numbers. Doubles have gaps, and the gaps tell the truth.",
        run=_floats,
    ),
    TourStep(
        name="errors", title="A question that fails for one person", lecture="004",
        about="A gateway that runs any expression can be made to fail exactly where a row has one value. Hubbub's "
        "expressions have a value for every row, and what has none is refused before anything is read.",
        run=_errors,
    ),
    TourStep(
        name="deterministic", title="Exact answers and samples are not private", lecture="000",
        about="What is deterministic tells two neighbouring tables apart. So does a sample, whenever the person is in "
        "it.",
        run=_deterministic,
    ),
)  # fmt: skip
