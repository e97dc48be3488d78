import { render } from "preact"
import { App } from "./App.tsx"
import { applyTheme } from "./components/shell/theme.ts"

applyTheme()

const place = document.querySelector("#app")
if (place !== null) render(<App />, place)
