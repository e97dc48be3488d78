import type { ComponentChildren } from "preact"

/** Figures side by side. */
export const Tiles = ({ children }: { readonly children: ComponentChildren }) => (
  <dl class="tiles">{children}</dl>
)

interface TileProps {
  readonly name: string
  /** What is said below the figure. */
  readonly note?: ComponentChildren
  readonly isBad?: boolean
  readonly children: ComponentChildren
}

export const Tile = ({ children, isBad = false, name, note }: TileProps) => (
  <div class={isBad ? "tile bad" : "tile"}>
    <dt>{name}</dt>
    <dd class="figure">{children}</dd>
    {note !== undefined && <dd class="faint">{note}</dd>}
  </div>
)
