import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = import.meta.dirname
const document = join(folder, "../../schema/openapi.json")

/** Installs what these files list, once per content: a mark file stores their digest. */
const once = (files: ReadonlyArray<string>, mark: string, install: () => boolean) => {
  const hash = createHash("sha256")
  for (const file of files) hash.update(readFileSync(file))
  const digest = hash.digest("hex")
  if (existsSync(mark) && readFileSync(mark, "utf8") === digest) return
  rmSync(mark, { force: true })
  if (install()) writeFileSync(mark, digest)
}

/** None of these packages needs its install script. */
const installNpm = (cwd: string, command: ReadonlyArray<string>) =>
  once([join(cwd, "package-lock.json")], join(cwd, "node_modules", ".installed-lock"), () => {
    const words = [...command, "--ignore-scripts", "--no-audit", "--no-fund"]
    const { status } = spawnSync("npm", words, { cwd, stdio: "inherit" })
    if (status !== 0) process.exit(status ?? 1)
    return true
  })

/** Installs into a separate environment. Without Python or PyPI its tests are skipped, which is printed. */
const installPython = (cwd: string) => {
  const requirements = join(cwd, "requirements.txt")
  const environment = join(cwd, "node_modules", ".python")
  once([requirements], join(environment, ".installed"), () => {
    rmSync(environment, { recursive: true, force: true })
    const pip = join(environment, "bin", "pip")
    const words = ["install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    const steps: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["python3", ["-m", "venv", environment]],
      [pip, [...words, "--requirement", requirements]]
    ]
    for (const [program, given] of steps) {
      const { error, status, stderr } = spawnSync(program, given, { encoding: "utf8" })
      if (status === 0) continue
      const reason = error?.message ?? stderr.trim().split("\n").at(-1)
      console.log(`Skipped: ${requirements} cannot be installed here (${reason})`)
      rmSync(environment, { recursive: true, force: true })
      return false
    }
    return true
  })
}

const build = (cwd: string, program: string, words: ReadonlyArray<string>) => {
  console.log(`${cwd}: ${program} ${words.join(" ")}`)
  const { status } = spawnSync(program, words, { cwd, stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}

/**
 * Builds the Go programs and the client that oapi-codegen generates for one of them. Without Go or its proxy they are
 * skipped, which is printed; a program that does not compile is a failure.
 */
const buildGo = (cwd: string) => {
  const made = join(cwd, "node_modules", ".go")
  const sources = globSync("{go.mod,go.sum,*.yaml,with_*/*.go}", { cwd }).toSorted()
  const files = [...sources.map((name) => join(cwd, name)), document]
  once(files, join(made, ".installed"), () => {
    const { error, status, stderr } = spawnSync("go", ["mod", "download"], {
      cwd,
      encoding: "utf8"
    })
    if (status !== 0) {
      const reason = error?.message ?? stderr.trim().split("\n").at(-1)
      console.log(`Skipped: the programs of ${cwd} cannot be made here (${reason})`)
      rmSync(made, { recursive: true, force: true })
      return false
    }
    mkdirSync(join(cwd, "made"), { recursive: true })
    mkdirSync(made, { recursive: true })
    build(cwd, "go", ["tool", "oapi-codegen", "-config", "oapi-codegen.yaml", document])
    build(cwd, "go", ["build", "-mod=readonly", "-o", `${made}/`, "./with_..."])
    return true
  })
}

/** Maven's messages when it cannot reach its repository or the repository lacks a package. */
const unreachable = /could not be resolved|could not transfer|unknown host|non-resolvable/iu

/**
 * Builds the Java programs and the client that openapi-generator generates for one of them. Without a JDK, Maven or its
 * repository they are skipped, which is printed; a program that does not compile is a failure.
 */
const buildJava = (cwd: string) => {
  const made = join(cwd, "node_modules", ".java")
  const sources = globSync("src/*.java", { cwd }).toSorted()
  const files = [join(cwd, "pom.xml"), ...sources.map((name) => join(cwd, name)), document]
  once(files, join(made, ".installed"), () => {
    rmSync(made, { recursive: true, force: true })
    const words = ["--batch-mode", "--quiet", "compile"]
    const { error, status, stderr, stdout } = spawnSync("mvn", words, { cwd, encoding: "utf8" })
    if (status === 0) return true
    const failures = `${stdout}${stderr}`
    if (error === undefined && !unreachable.test(failures)) {
      console.log(failures)
      process.exit(status ?? 1)
    }
    const reason = error?.message ?? unreachable.exec(failures)?.[0]
    console.log(`Skipped: the programs of ${cwd} cannot be made here (${reason})`)
    rmSync(made, { recursive: true, force: true })
    return false
  })
}

const pythonEnvironments = [
  "python",
  "instructor",
  "litellm",
  "generated",
  "schemathesis",
  "vendors"
]

switch (process.argv[2]) {
  case "agents":
    // A registry may lack the binaries for other platforms, without which `npm ci` refuses the lock file
    installNpm(join(folder, "agents"), ["install", "--no-save"])
    installPython(join(folder, "agents"))
    break
  case "languages":
    for (const name of pythonEnvironments) installPython(join(folder, "languages", name))
    buildGo(join(folder, "languages", "go"))
    buildJava(join(folder, "languages", "java"))
    break
  default:
    installNpm(folder, ["ci"])
}
