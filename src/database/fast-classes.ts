/**
 * Makes V8 store the static properties of the class in its fast form, and not in a dictionary.
 *
 * V8 uses a dictionary if the class has a static getter with a computed name. Then Node 20 and 24
 * never run optimized code for a function that constructs an instance of the class. They compile the
 * function, discard the result because of the dictionary, and soon compile it again. postgres.js 3.4.9
 * constructs instances of two such classes for each statement.
 *
 * V8 changes to the fast form when a property is read through an object that inherits from the class.
 */
export function useFastForm(someClass: object): void {
  const heir = Object.create(someClass)
  heir.name
}
