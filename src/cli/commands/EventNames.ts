import { Option } from "effect"
import { Flag } from "effect/cli"
import { EventType } from "../../domain/Event.ts"

const known: ReadonlyArray<EventType> = EventType.literals

const isKnown = (name: string): name is EventType => known.some((it) => it === name)

/** `--events task.succeeded,task.failed`; default all. docs/reference/webhooks.md#events */
export const eventNames = Flag.String("events").pipe(
  Flag.withMetavar("TYPE,…"),
  Flag.withDescription(`Of ${known.join(", ")}. Default: all`),
  Flag.filterMap(
    (text) => {
      const names = [...new Set(text.split(",").map((it) => it.trim()))]
      return names.every(isKnown) ? Option.some(names) : Option.none()
    },
    (text) =>
      `Expected one or more of ${known.join(", ")}, separated by commas, got ${JSON.stringify(text)}`
  ),
  Flag.withDefault(known)
)
