import { basePath } from "../../api/address.ts"
import { signOut } from "../../api/session.ts"
import type { Session } from "../../api/session.ts"
import { texts } from "../../texts/en.ts"
import { Segments } from "../form/Segments.tsx"
import { Icon } from "../Icon.tsx"
import { Menu } from "../Menu.tsx"
import { setTheme, theme } from "./theme.ts"
import type { Theme } from "./theme.ts"

const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]

/** The signed-in user, the theme, the documentation, and signing out. */
export const AccountMenu = ({ who: { user } }: { readonly who: Session }) => {
  const name = user === null ? texts.operator : (user.name ?? user.email)
  return (
    <Menu
      class="quiet"
      button={
        <>
          <span class="avatar" aria-hidden="true">
            {name.trim().charAt(0).toUpperCase()}
          </span>
          <span class="who">{name}</span>
          <span class="hidden">{texts.account}</span>
          <Icon name="down" />
        </>
      }
    >
      <div class="account-name">
        <strong>{name}</strong>
        {user !== null && user.name !== null && <div class="faint">{user.email}</div>}
      </div>
      <Segments
        label={texts.theme.label}
        value={theme.value}
        options={themes.map((it) => [it, texts.theme[it]])}
        onValue={(value) => setTheme(themes.find((it) => it === value) ?? "system")}
      />
      <hr />
      <a href={`${basePath}/docs`} target="_blank" rel="noreferrer">
        {texts.documents}
      </a>
      <button type="button" onClick={() => void signOut()}>
        {texts.signOut}
      </button>
    </Menu>
  )
}
