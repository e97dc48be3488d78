import { texts } from "../../texts/en.ts"
import { Icon } from "../Icon.tsx"
import { Menu } from "../Menu.tsx"

export interface RowAction {
  readonly label: string
  /** The label with what it acts on, for those who do not see the row. */
  readonly name: string
  readonly isDangerous?: boolean
  readonly onAct: () => void
}

interface Props {
  /** What the row is about. */
  readonly of: string
  readonly actions: ReadonlyArray<RowAction>
}

/** What one does with a row, behind “⋯”. */
export const RowMenu = ({ actions, of }: Props) =>
  actions.length === 0 ? null : (
    <Menu class="quiet square" label={texts.actionsFor(of)} button={<Icon name="more" />}>
      {actions.map(({ isDangerous, label, name, onAct }) => (
        <button
          key={label}
          type="button"
          class={isDangerous === true ? "danger" : undefined}
          aria-label={name}
          onClick={onAct}
        >
          {label}
        </button>
      ))}
    </Menu>
  )
