import { Result } from "effect"
import { routeOf } from "../catalog/AliasTargets.ts"
import type { TokenModel } from "../catalog/OpenRoutes.ts"
import { withMember } from "../domain/json/JsonBytes.ts"
import { withoutMark } from "../domain/json/JsonDocument.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import type { OpenPath, PassthroughCall } from "./PassthroughCall.ts"
import { readBody } from "./streams/MeteredBody.ts"
import type { ReadBody } from "./streams/MeteredBody.ts"

/** The other vendor's model that `vendor/model` names, on paths shared by several vendors' clients. */
export const modelElsewhere = (
  { isShared, to: { catalog } }: PassthroughCall,
  name: string
): TokenModel | undefined => {
  const slash = name.indexOf("/")
  if (!isShared || slash < 0) return undefined
  // The vendor gets the name as the client wrote it, which may be that of a version
  const model = name.slice(slash + 1)
  const priced = catalog.priced(name.slice(0, slash), model)
  return priced && { ...priced, model }
}

type VendorModel = Pick<TokenModel, "vendor" | "model">

/** The call as sent to that vendor: to its route of the same protocol, with its own name of the model. */
export const callElsewhere = (
  call: PassthroughCall,
  read: ReadBody,
  model: VendorModel
): PassthroughCall | undefined => {
  const { catalog, model: inPath, route: asked } = call.to
  const route = routeOf(catalog.routes, asked, model)
  if (route._tag === "None") return undefined
  const to: OpenPath = {
    ...call.to,
    route: route.value,
    path: route.value.path.replace("{model}", model.model),
    model: inPath === undefined ? undefined : model.model
  }
  return { ...call, to, body: bodyFor(read, model.model) }
}

/**
 * A free call as sent to the vendor of the model that its body names, such as a count of that model's tokens. Fails as
 * `readBody` does, and with 2006 if that vendor does not have the route.
 */
export const freeCallOf = (call: PassthroughCall): Result.Result<PassthroughCall, Problem> => {
  if (!call.isShared || call.to.route.method !== "POST") return Result.succeed(call)
  return Result.flatMap(readBody(withoutMark(call.body)), (read) => {
    const name = read.body.model ?? ""
    const isOwn = call.to.catalog.priced(call.to.route.vendor, name) !== undefined
    const model = isOwn ? undefined : modelElsewhere(call, name)
    if (model === undefined) return Result.succeed(call)
    const own = callElsewhere(call, read, model)
    return own === undefined ? Result.fail(noRouteOf(model, call)) : Result.succeed(own)
  })
}

/** 2006: the vendor has no such route. */
export const noRouteOf = ({ vendor }: VendorModel, { to: { route } }: PassthroughCall): Problem =>
  problem(2006, `${vendor} is not offered at ${route.method} ${route.path}`)

/** The body with another `model`, if it has that member. All other bytes stay as the client wrote them. */
const bodyFor = ({ body, bytes }: ReadBody, model: string): Uint8Array =>
  body.model === undefined ? bytes : withMember(bytes, "model", model)
