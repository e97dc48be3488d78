import { texts } from "../../texts/en.ts"
import { Icon } from "../Icon.tsx"
import { Menu } from "../Menu.tsx"

export interface RowAction {
  readonly label: string
  /** The label including what it acts on, for screen readers. */
  readonly name: string
  readonly isDangerous?: boolean
  readonly onAct: () => void
}

interface Props {
  /** The name of the row. */
  readonly of: string
  readonly actions: ReadonlyArray<RowAction>
}

/** The actions of a row, behind “⋯”. */
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
