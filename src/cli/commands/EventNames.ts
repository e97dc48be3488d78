import { Option } from "effect"
import { Flag } from "effect/cli"
import { DeliveryType, StreamedEventType } from "../../domain/Event.ts"

/** Parses the value of a flag such as `--events task.succeeded,task.failed`. docs/reference/webhooks.md#events */
const namesOf = <A extends string>(
  known: ReadonlyArray<A>,
  byDefault: ReadonlyArray<A>,
  about: string
) => {
  const isKnown = (name: string): name is A => known.some((it) => it === name)
  return Flag.String("events").pipe(
    Flag.withMetavar("TYPE,…"),
    Flag.withDescription(`Of ${known.join(", ")}. Default: ${about}`),
    Flag.filterMap(
      (text) => {
        const names = [...new Set(text.split(",").map((it) => it.trim()))]
        return names.every(isKnown) ? Option.some(names) : Option.none()
      },
      (text) =>
        `Expected one or more of ${known.join(", ")}, separated by commas, got ${JSON.stringify(text)}`
    ),
    Flag.withDefault(byDefault)
  )
}

const streamed = StreamedEventType.literals

/** The events of an endpoint. `webhook.failing`, `key.expiring` and OpenAI's names are not included by default. */
export const endpointEvents = namesOf(
  DeliveryType.literals,
  streamed,
  "all but webhook.failing, key.expiring and those of OpenAI"
)

export const streamedEvents = namesOf(streamed, streamed, "all")
