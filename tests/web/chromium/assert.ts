/** As much of `node:assert/strict` as our tests use, for a browser. */

type Expected = RegExp | (abstract new (...given: never[]) => unknown);

function fail(what: string, message?: string): never {
  throw new Error(message === undefined ? what : `${message}: ${what}`);
}

function shown(value: unknown): string {
  return (
    JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}n` : each)) ??
    String(value)
  );
}

function isSame(one: any, other: any): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Map) {
    return (
      one.size === other.size &&
      [...one].every(([key, value]) => other.has(key) && isSame(value, other.get(key)))
    );
  }
  const [mine, theirs] = [Object.keys(one), Object.keys(other)];
  return (
    mine.length === theirs.length &&
    mine.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  );
}

function check(error: unknown, expected: Expected | undefined, message?: string): void {
  if (
    expected instanceof RegExp
      ? !expected.test(String(error))
      : expected && !(error instanceof expected)
  ) {
    fail(`another error: ${error}`, message);
  }
}

const assert = {
  ok(value: unknown, message?: string): void {
    if (!value) fail("it does not hold", message);
  },
  equal(one: unknown, other: unknown, message?: string): void {
    if (!Object.is(one, other)) fail(`${shown(one)} is not ${shown(other)}`, message);
  },
  notEqual(one: unknown, other: unknown, message?: string): void {
    if (Object.is(one, other)) fail(`both are ${shown(one)}`, message);
  },
  deepEqual(one: unknown, other: unknown, message?: string): void {
    if (!isSame(one, other)) fail(`${shown(one)} is not ${shown(other)}`, message);
  },
  match(text: string, expected: RegExp, message?: string): void {
    if (!expected.test(text)) fail(`'${text}' is not like ${expected}`, message);
  },
  throws(run: () => unknown, expected?: Expected, message?: string): void {
    try {
      run();
    } catch (error) {
      return check(error, expected, message);
    }
    fail("nothing was thrown", message);
  },
  async rejects(run: Promise<unknown>, expected?: Expected, message?: string): Promise<void> {
    try {
      await run;
    } catch (error) {
      return check(error, expected, message);
    }
    fail("nothing was thrown", message);
  },
};

export default assert;
