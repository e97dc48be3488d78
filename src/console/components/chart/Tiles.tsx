import type { ComponentChildren } from "preact"
import type { Query } from "../../router/location.ts"
import { Link } from "../Link.tsx"

/** Figures side by side. */
export const Tiles = ({ children }: { readonly children: ComponentChildren }) => (
  <dl class="tiles">{children}</dl>
)

interface TileProps {
  readonly name: string
  /** Shown below the figure. */
  readonly note?: ComponentChildren
  readonly isBad?: boolean
  /** The page that explains the figure; the whole tile links to it. */
  readonly to?: string
  readonly query?: Query
  readonly children: ComponentChildren
}

export const Tile = ({ children, isBad = false, name, note, query = {}, to }: TileProps) => (
  <div class={isBad ? "tile bad" : "tile"}>
    <dt>
      {to === undefined ? (
        name
      ) : (
        <Link to={to} query={query}>
          {name}
        </Link>
      )}
    </dt>
    <dd class="figure">{children}</dd>
    {note !== undefined && <dd class="faint">{note}</dd>}
  </div>
)
