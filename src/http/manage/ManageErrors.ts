import { HttpApiSchema } from "effect/http-api"
import { Problem, StoreUnavailable } from "../../domain/Problem.ts"

/** What every management endpoint may fail with; `ManageGate` answers all of it as a problem. */
export const manageErrors = [Problem, StoreUnavailable] as const

/** 201 */
export const created = HttpApiSchema.status(201)
