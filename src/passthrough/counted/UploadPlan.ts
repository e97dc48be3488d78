import { Result } from "effect"
import { endingOf } from "../../catalog/PriceRow.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import { allowsModel, modelNotAllowed } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import type { CallPlan, MeteredTokens } from "../CallPlan.ts"
import { soldModel } from "../SoldModel.ts"
import type { MeteredRoute, SoldModel } from "../SoldModel.ts"
import { transcriptionOf } from "./CountedCall.ts"
import type { CountedCall } from "./CountedCall.ts"
import type { Upload } from "./Upload.ts"

const noBytes = new Uint8Array()

/**
 * Plans a form with a file. The form often names its model only after the file. The hold then covers the most expensive
 * model that the key may use, and the name is checked before the vendor has the end of the form. Fails with 2001 or
 * 2006. docs/reference/wallet.md#speech-transcription-and-reranking, ADR 0305
 */
export const planUpload = (
  at: MeteredRoute,
  upload: Upload,
  principal: Principal | undefined
): Result.Result<CallPlan, Problem> => {
  const name = upload.model
  if (name === undefined) return planUnnamed(at, upload, principal)
  return Result.map(soldModel(at, name), (sold) => {
    const counted = transcriptionOf(upload, sold.model, sold.price)
    const metered = { ...shared(at), ...sold, counted }
    return { ...planned, ending: endingOf(sold.model), metered, model: name, hold: counted.hold }
  })
}

const planned = { body: noBytes, hidesUsage: false }

const shared = ({ catalog, nowMillis, protocol }: MeteredRoute) => ({
  _tag: "Tokens" as const,
  protocol,
  usage: undefined,
  // In an event stream, the figures come at the end
  mayReason: true,
  fallbacks: [],
  catalog,
  nowMillis
})

interface Candidate extends SoldModel {
  readonly named: string | undefined
  readonly counted: CountedCall
}

const planUnnamed = (
  at: MeteredRoute,
  upload: Upload,
  principal: Principal | undefined
): Result.Result<CallPlan, Problem> => {
  const mayUse = (names: ReadonlyArray<string>) =>
    principal === undefined || allowsModel(principal, names)
  const candidates = at.catalog.tokenModels.flatMap((row): ReadonlyArray<Candidate> => {
    if (row.vendor !== at.route.vendor || !mayUse([row.model])) return []
    const sold = Result.getOrUndefined(soldModel(at, row.model))
    if (sold === undefined) return []
    return [{ ...sold, named: undefined, counted: transcriptionOf(upload, sold.model, sold.price) }]
  })
  const [mostExpensive] = candidates.toSorted((a, b) => (b.counted.hold > a.counted.hold ? 1 : -1))
  if (mostExpensive === undefined) {
    const detail = "Expected the name of a model before the file"
    return Result.fail(invalid([{ pointer: "#/model", detail }]))
  }
  let used = mostExpensive
  upload.onModel = (name) => {
    const sold = soldModel(at, name)
    if (Result.isFailure(sold)) return sold.failure
    const { model, price } = sold.success
    if (!mayUse([name, model.model])) return modelNotAllowed(name)
    used = { model, price, named: name, counted: transcriptionOf(upload, model, price) }
    return undefined
  }
  const metered: MeteredTokens = {
    ...shared(at),
    get model() {
      return used.model
    },
    get price() {
      return used.price
    },
    get counted() {
      return used.counted
    },
    get named() {
      return used.named
    }
  }
  const { hold } = mostExpensive.counted
  return Result.succeed({ ...planned, ending: undefined, metered, model: null, hold })
}
