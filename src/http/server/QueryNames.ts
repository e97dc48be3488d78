import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { pointerOf } from "../../catalog/FieldFaults.ts"
import { invalid } from "../../domain/Problem.ts"

/** Refuses unknown query parameters: a misspelled `?dryrun=true` must not create a paid task. ADR 0110. */
export const refuseUnknownQuery = (known: ReadonlyArray<string>) =>
  Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) => {
    const faults = Object.keys(query)
      .filter((name) => !known.includes(name))
      .map((name) => ({ pointer: pointerOf(["query", name]), detail: "Unknown field" }))
    return faults.length === 0 ? Effect.void : Effect.fail(invalid(faults))
  })
