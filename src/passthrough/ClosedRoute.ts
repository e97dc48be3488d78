import type { OpenRoute } from "../catalog/OpenRoutes.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"

/** The most routes that the problem names, because a catalog may open any number. */
const namedMax = 20

/** The problem for a path that is not open; it lists the open routes. docs/reference/passthrough.md#open-routes */
export const closedRoute = (routes: ReadonlyArray<OpenRoute>, vendor: string): Problem => {
  const own = routes.filter((route) => route.vendor === vendor)
  const paths = own.map(({ method, path }) => `${method} /vendors/${vendor}${path}`)
  const more = "An operator opens more with CATALOG_FILE"
  if (paths.length === 0) {
    const vendors = [...new Set(routes.map((route) => route.vendor))].join(", ")
    return problem(
      2006,
      `This vendor has no open routes here. Vendors that have: ${vendors}. ${more}`
    )
  }
  const rest = paths.length > namedMax ? ` and ${paths.length - namedMax} more` : ""
  const open = `${paths.slice(0, namedMax).join(", ")}${rest}`
  return problem(2006, `This route of ${vendor} is not open here. Open: ${open}. ${more}`)
}
