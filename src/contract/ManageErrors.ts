import { HttpApiSchema } from "effect/http-api"
import { Problem, StoreUnavailable } from "../domain/Problem.ts"

/** The failures of every management endpoint. `ManageProblems` returns them as problems. */
export const manageErrors = [Problem, StoreUnavailable] as const

/** Status 201. */
export const created = HttpApiSchema.status(201)
